// SPDX-License-Identifier: GPL-2.0-only
// Timelines: a lane for each vCPU or pCPU, a bar for each interval.

/// Bars differ in height too: running is high, waiting is low.
const HEIGHTS = [0.42, 0.24, 0.24];

function spans(place, chart) {
  const waits = chart.states[1] === "preempted";
  const colours = numbers(chart.states);
  const fill = (i) => (waits ? colour("s" + i) : seriesColour(colours[i]));
  const half = (i) => (waits ? HEIGHTS[i] : 0.38);
  legend(place, chart.states, (context, i, w, h) => {
    context.fillStyle = fill(i);
    context.fillRect(2, h / 2 - h * half(i), w - 4, h * 2 * half(i));
  });
  const [from, to] = [chart.from_ns, chart.to_ns];
  const draw = (u) => {
    const { ctx: context } = u;
    const scale = devicePixelRatio;
    context.save();
    context.scale(scale, scale);
    context.translate(u.bbox.left / scale, u.bbox.top / scale);
    context.beginPath();
    context.rect(0, 0, u.over.clientWidth, u.over.clientHeight);
    context.clip();
    for (const span of chart.spans) {
      const [left, right] = [u.valToPos(span.from_ns - from, "x"), u.valToPos(span.to_ns - from, "x")];
      const [top, bottom] = [u.valToPos(span.lane - half(span.state), "y"), u.valToPos(span.lane + half(span.state), "y")];
      context.fillStyle = fill(span.state);
      context.fillRect(left, top, Math.max(1, right - left), bottom - top);
    }
    context.restore();
  };
  const x = { label: "since " + number(from / 1e9) + " s of the recording", log: false, range: null, format: (v) => (v === 0 ? "0" : time(v)) };
  const options = rowFrame(place, chart.lanes, 20, x, draw);
  // Dragging zooms, a double click shows all again.
  options.scales.x = { time: false };
  options.cursor = { x: false, y: false, points: { show: false }, drag: { x: true, y: false } };
  options.axes[0].splits = undefined;
  options.axes[0].filter = undefined;
  const plot = rowPlot(place, options, [0, to - from]);
  const describe = (u, px, py) => {
    const lane = Math.round(u.posToVal(py, "y"));
    const at = u.posToVal(px, "x") + from;
    const span = chart.spans.find((s) => s.lane === lane && s.from_ns <= at && at < s.to_ns);
    if (!span) return null;
    return chart.lanes[lane] + "\n" + chart.states[span.state] + ", " + time(span.to_ns - span.from_ns)
      + "\nfrom " + (span.from_ns / 1e9).toFixed(6) + " s";
  };
  const middles = (u) => chart.spans.map((s) => [
    u.valToPos((s.from_ns + s.to_ns) / 2 - from, "x"),
    u.valToPos(s.lane, "y"),
  ]);
  hover(place, plot, describe, middles);
  return plot;
}
