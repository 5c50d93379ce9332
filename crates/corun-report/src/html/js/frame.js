// SPDX-License-Identifier: GPL-2.0-only
// What all charts share: colours of the theme, formats of numbers, axes, size.

const FONT = "12px system-ui, sans-serif";
const COLOURS = 6;

/// The value of a colour of the style sheet, as the theme has it now.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/// The colour of a series.
function seriesColour(i) {
  return colour("c" + (i % COLOURS));
}

/// Numbers of the colours of some names: a scheduler or a VM has one colour on
/// the whole page, unless two names of one chart would share it.
function numbers(names) {
  for (const name of names) {
    if (!known.has(name)) known.set(name, name === "alone" ? COLOURS - 1 : next++);
  }
  const wanted = names.map((name) => known.get(name));
  const apart = new Set(wanted.map((n) => n % COLOURS)).size === names.length;
  return apart ? wanted : names.map((_, i) => i);
}

const known = new Map();
let next = 0;

/// Dashes of a series' line: the second thing that tells it from others.
function dashes(i) {
  return [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2]][i % COLOURS];
}

/// Three digits that matter; thousands apart.
function number(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  const text = value.toPrecision(3);
  return text.includes("e") ? text : String(Number(text));
}

/// A time with the unit that suits it.
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (ns >= size * 0.9995) return number(ns / size) + " " + unit;
  }
  return number(ns) + " ns";
}

/// "median [smallest..largest]".
function spread(s) {
  return number(s.median) + " [" + number(s.min) + ".." + number(s.max) + "], " + s.count + " repeats";
}

/// Ticks of a logarithmic axis: the densest that have room, round numbers of each
/// decade or whole decades.
function logTicks(low, high, room) {
  const most = Math.max(3, room);
  for (const steps of [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3]]) {
    const ticks = decadeTicks(low, high, steps, 1);
    if (ticks.length > 1 && ticks.length <= most) return ticks;
  }
  const every = Math.ceil(Math.log10(high / low) / most);
  const ticks = decadeTicks(low, high, [1], every);
  return ticks.length > 1 ? ticks : evenTicks(low, high);
}

function decadeTicks(low, high, steps, every) {
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    if (((e % every) + every) % every !== 0) continue;
    for (const step of steps) {
      const tick = Number((step * 10 ** e).toPrecision(6));
      if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push(tick);
    }
  }
  return ticks;
}

/// A few round numbers from `low` to `high`.
function evenTicks(low, high) {
  const rough = (high - low) / 4 || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * size >= rough) * size;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

/// An axis in the theme's colours.
function axis(options) {
  return Object.assign({
    font: FONT,
    labelFont: FONT,
    labelSize: 18,
    stroke: () => colour("soft"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1, size: 5 },
  }, options);
}

/// Room for the longest of some names, at most a share of the chart.
function nameRoom(names, width) {
  const context = nameRoom.context ||= document.createElement("canvas").getContext("2d");
  context.font = FONT;
  const widest = Math.max(0, ...names.map((name) => context.measureText(name).width));
  return Math.ceil(Math.min(widest + 14, width * 0.42));
}

/// A name cut to what fits in `room` pixels; its end, which tells vCPUs and
/// schedulers apart, stays.
function fitted(name, room) {
  const context = nameRoom.context;
  context.font = FONT;
  if (context.measureText(name).width <= room) return name;
  const letters = Array.from(name);
  const end = letters.slice(-5).join("");
  let begin = letters.slice(0, -5);
  while (begin.length > 1 && context.measureText(begin.join("") + "…" + end).width > room) begin.pop();
  return begin.join("") + "…" + end;
}

/// A legend of small drawings with names.
function legend(place, names, draw) {
  const list = document.createElement("div");
  list.className = "legend";
  names.forEach((name, i) => {
    const item = document.createElement("span");
    const mark = document.createElement("canvas");
    const scale = devicePixelRatio;
    [mark.width, mark.height] = [26 * scale, 14 * scale];
    [mark.style.width, mark.style.height] = ["26px", "14px"];
    const context = mark.getContext("2d");
    const paint = () => {
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, 26, 14);
      draw(context, i, 26, 14);
    };
    paint();
    repaints.push(paint);
    item.append(mark, name);
    list.append(item);
  });
  place.append(list);
}

/// What is to be painted again when the theme changes.
const repaints = [];

/// The shape of a series' mark.
function shape(context, i, x, y, size) {
  context.beginPath();
  const r = size;
  switch (i % COLOURS) {
    case 0: context.arc(x, y, r, 0, 2 * Math.PI); break;
    case 1: context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8); break;
    case 2: polygon(context, [[x, y - r * 1.2], [x + r * 1.1, y + r * 0.8], [x - r * 1.1, y + r * 0.8]]); break;
    case 3: polygon(context, [[x, y - r * 1.25], [x + r * 1.25, y], [x, y + r * 1.25], [x - r * 1.25, y]]); break;
    case 4: polygon(context, [[x, y + r * 1.2], [x + r * 1.1, y - r * 0.8], [x - r * 1.1, y - r * 0.8]]); break;
    default: context.rect(x - r * 0.5, y - r * 1.2, r, r * 2.4);
  }
  context.fill();
}

function polygon(context, points) {
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}
