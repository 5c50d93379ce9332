// SPDX-License-Identifier: GPL-2.0-only
// Charts of lines: cumulative distributions, and values over time.

function lineFrame(place, names, stepped, x, y) {
  const colours = numbers(names);
  const series = names.map((name, i) => ({
    label: name,
    stroke: () => seriesColour(colours[i]),
    width: 2,
    dash: dashes(colours[i]),
    points: { show: false },
    spanGaps: false,
    paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
  }));
  legend(place, names, (context, i, w, h) => {
    context.strokeStyle = seriesColour(colours[i]);
    context.lineWidth = 2;
    context.setLineDash(dashes(colours[i]));
    line(context, 0, h / 2, w, h / 2);
  });
  return {
    width: place.clientWidth,
    height: 280,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    padding: [8, 14, 0, 0],
    scales: { x: x.scale, y: y.scale },
    series: [{}, ...series],
    axes: [axis(Object.assign({ size: 30 }, x.axis)), axis(Object.assign({ size: 48 }, y.axis))],
  };
}

/// Keys walk along the horizontal axis in thirty steps.
function steps(u) {
  const [width, height] = [u.over.clientWidth, u.over.clientHeight];
  return Array.from({ length: 31 }, (_, i) => [(width * i) / 30, height / 2]);
}

/// Cumulative distributions.
function cdf(place, chart) {
  const names = chart.curves.map((c) => c.name);
  const options = lineFrame(place, names, true, {
    scale: { time: false, distr: 3, range: (u, low, high) => [low, high] },
    axis: {
      splits: (u, i, low, high) => logTicks(low, high, u.bbox.width / devicePixelRatio / 62),
      filter: (u, splits) => splits,
      values: (u, ticks) => ticks.map(time),
    },
  }, {
    scale: { range: [0, 1.02] },
    axis: {
      splits: () => [0, 0.25, 0.5, 0.75, 0.9, 1],
      values: (u, ticks) => ticks.map((t) => Math.round(t * 100) + " %"),
    },
  });
  const plot = new uPlot(options, [chart.at_ns, ...chart.curves.map((c) => c.shares)], place);
  const describe = (u, x) => {
    const at = u.posToIdx(x);
    const lines = chart.curves.map((c) => c.name + ": " + (c.shares[at] * 100).toFixed(1) + " %");
    return ["up to " + time(chart.at_ns[at]), ...lines].join("\n");
  };
  hover(place, plot, describe, steps);
  return plot;
}

/// Values over time.
function lines(place, chart) {
  const names = chart.series.map((s) => s.name);
  const high = Math.max(0, ...chart.series.flatMap((s) => s.values));
  const options = lineFrame(place, names, false, {
    scale: { time: false },
    axis: {
      label: chart.x_label,
      incrs: chart.x.every(Number.isInteger) ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1e4] : undefined,
      values: (u, ticks) => ticks.map(number),
    },
  }, {
    scale: { range: [0, high * 1.08 || 1] },
    axis: { label: chart.y_label, values: (u, ticks) => ticks.map(number) },
  });
  // A value without neighbours has no line: it is a dot.
  options.series.slice(1).forEach((s, i) => {
    s.points = { show: chart.series[i].values.includes(null), size: 8, stroke: s.stroke, fill: s.stroke };
  });
  const plot = new uPlot(options, [chart.x, ...chart.series.map((s) => s.values)], place);
  const describe = (u, x) => {
    const at = u.posToIdx(x);
    const shown = chart.series.filter((s) => s.values[at] !== null);
    const lines = shown.map((s) => s.name + ": " + number(s.values[at]));
    return [chart.x_label + ": " + number(chart.x[at]), ...lines].join("\n");
  };
  hover(place, plot, describe, steps);
  return plot;
}
