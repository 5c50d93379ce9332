// SPDX-License-Identifier: GPL-2.0-only
// Charts with a row for each thing: dots with their spread, and stacked shares.

/// A frame whose vertical axis has names instead of numbers.
function rowFrame(place, names, rowHeight, x, draw) {
  const width = place.clientWidth;
  const lines = names.length;
  return {
    width,
    height: lines * rowHeight + 52,
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { setScale: false } },
    padding: [4, 24, 0, 0],
    scales: {
      x: { time: false, distr: x.log ? 3 : 1, range: x.range },
      y: { dir: -1, range: [-0.5, lines - 0.5] },
    },
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      axis({
        label: x.label,
        size: 30,
        splits: x.log ? (u, i, low, high) => logTicks(low, high, u.bbox.width / devicePixelRatio / 55) : undefined,
        filter: (u, splits) => splits,
        values: (u, ticks) => ticks.map(x.format),
        space: 70,
      }),
      axis({
        size: (u, values) => nameRoom(names, u.width),
        splits: () => names.map((_, i) => i),
        filter: (u, splits) => splits,
        values: (u) => names.map((name) => fitted(name, nameRoom(names, u.width) - 12)),
        grid: { show: false },
        ticks: { show: false },
        stroke: () => colour("ink"),
      }),
    ],
    hooks: { draw: [draw] },
  };
}

function rowPlot(place, options, range) {
  return new uPlot(options, [range, [null, null]], place);
}

/// Medians with their spread.
function dots(place, chart) {
  const values = chart.values.flat().filter(Boolean);
  const references = chart.references.filter((r) => r !== null);
  const high = Math.max(...values.map((s) => s.max), ...references);
  const low = Math.min(...values.map((s) => s.min), ...references);
  const range = chart.log ? [low / 1.15, high * 1.15] : [0, high * 1.05 || 1];
  const lanes = chart.series.length;
  const colours = numbers(chart.series);
  const rowHeight = Math.max(26, 11 * lanes + 8);
  const centre = (row, i) => row + ((i + 0.5) / lanes - 0.5) * (lanes > 1 ? 0.78 : 0);
  const names = chart.reference ? [...chart.series, chart.reference] : chart.series;
  legend(place, names, (context, i, w, h) => {
    context.fillStyle = context.strokeStyle = i < lanes ? seriesColour(colours[i]) : colour("ink");
    context.lineWidth = 2;
    context.beginPath();
    if (i < lanes) {
      context.moveTo(1, h / 2);
      context.lineTo(w - 1, h / 2);
      context.stroke();
      shape(context, colours[i], w / 2, h / 2, 4);
    } else {
      context.moveTo(w / 2, 1);
      context.lineTo(w / 2, h - 1);
      context.stroke();
    }
  });
  const eachMark = (u, visit) => chart.values.forEach((column, i) => column.forEach((s, row) => {
    if (s) visit(s, i, row, u.valToPos(centre(row, i), "y"));
  }));
  const draw = (u) => {
    const { ctx: context } = u;
    const scale = devicePixelRatio;
    const [left, top] = [u.bbox.left / scale, u.bbox.top / scale];
    context.save();
    context.scale(scale, scale);
    context.translate(left, top);
    stripes(context, u, chart.rows.length);
    chart.references.forEach((value, row) => {
      if (value === null) return;
      const x = u.valToPos(value, "x");
      context.strokeStyle = colour("ink");
      context.lineWidth = 2;
      line(context, x, u.valToPos(row - 0.42, "y"), x, u.valToPos(row + 0.42, "y"));
    });
    eachMark(u, (s, i, row, y) => {
      context.fillStyle = context.strokeStyle = seriesColour(colours[i]);
      context.lineWidth = 2;
      line(context, u.valToPos(s.min, "x"), y, u.valToPos(s.max, "x"), y);
      shape(context, colours[i], u.valToPos(s.median, "x"), y, 4);
    });
    context.restore();
  };
  const x = { label: chart.x_label, log: chart.log, range, format: number };
  const plot = rowPlot(place, rowFrame(place, chart.rows, rowHeight, x, draw), range);
  const marks = (u) => {
    const all = [];
    eachMark(u, (s, i, row, y) => all.push({
      x: u.valToPos(s.median, "x"),
      y,
      text: chart.rows[row] + "\n" + chart.series[i] + ": " + spread(s),
    }));
    return all;
  };
  hover(place, plot, (u, px, py) => nearest(marks(u), px, py), (u) => marks(u).map((m) => [m.x, m.y]));
  return plot;
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/// Every other row a little darker, so that the eye finds back.
function stripes(context, u, rows) {
  context.fillStyle = colour("axis");
  context.globalAlpha = 0.08;
  const height = u.valToPos(1, "y") - u.valToPos(0, "y");
  for (let row = 0; row < rows; row += 2) {
    context.fillRect(0, u.valToPos(row - 0.5, "y"), u.over.clientWidth, height);
  }
  context.globalAlpha = 1;
}

/// Stacked shares of a whole.
function stack(place, chart) {
  const states = chart.parts.length === 5;
  const fill = (i) => colour((states ? "s" : "c") + (i % COLOURS));
  legend(place, chart.parts, (context, i, w, h) => {
    context.fillStyle = fill(i);
    context.fillRect(4, 1, w - 8, h - 2);
  });
  const draw = (u) => {
    const { ctx: context } = u;
    const scale = devicePixelRatio;
    context.save();
    context.scale(scale, scale);
    context.translate(u.bbox.left / scale, u.bbox.top / scale);
    chart.shares.forEach((shares, row) => {
      const [top, bottom] = [u.valToPos(row - 0.36, "y"), u.valToPos(row + 0.36, "y")];
      let sum = 0;
      shares.forEach((share, i) => {
        const [left, right] = [u.valToPos(sum * 100, "x"), u.valToPos((sum + share) * 100, "x")];
        context.fillStyle = fill(i);
        // A gap keeps neighbours apart whatever their colours.
        context.fillRect(left, top, Math.max(0, right - left - (right - left > 3 ? 1 : 0)), bottom - top);
        sum += share;
      });
    });
    context.restore();
  };
  const x = { label: "% of the time", log: false, range: [0, 100], format: (v) => v + " %" };
  const plot = rowPlot(place, rowFrame(place, chart.rows, 26, x, draw), [0, 100]);
  const describe = (u, px, py) => {
    const row = Math.round(u.posToVal(py, "y"));
    const shares = chart.shares[row];
    if (!shares) return null;
    const lines = shares.map((s, i) => chart.parts[i] + ": " + (s * 100).toFixed(1) + " %");
    return [chart.rows[row], ...lines].join("\n");
  };
  hover(place, plot, describe, (u) => chart.rows.map((_, row) => [u.over.clientWidth / 2, u.valToPos(row, "y")]));
  return plot;
}
