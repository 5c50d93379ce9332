// SPDX-License-Identifier: GPL-2.0-only
// Draws the charts, keeps them in size and in the theme's colours.

const KINDS = { dots, stack, cdf, lines, spans };
const plots = [];

function draw() {
  for (const chart of JSON.parse(document.getElementById("data").textContent)) {
    const place = document.getElementById(chart.id);
    plots.push({ place, plot: KINDS[chart.plot](place, chart) });
  }
}

function redraw() {
  for (const paint of repaints) paint();
  for (const { plot } of plots) plot.redraw();
}

function fit(width) {
  for (const { place, plot } of plots) {
    const room = width || place.clientWidth;
    if (room > 0 && room !== plot.width) plot.setSize({ width: room, height: plot.height });
  }
}

// The theme is the system's until the reader chooses another.
const dark = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["system", "light", "dark"];
let theme = "system";

function applyTheme(print) {
  const isDark = !print && (theme === "dark" || (theme === "system" && dark.matches));
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  redraw();
}

document.getElementById("theme").addEventListener("click", (event) => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  event.target.textContent = "Theme: " + (theme === "system" ? "as the system" : theme);
  applyTheme(false);
});
dark.addEventListener("change", () => applyTheme(false));

// A sheet of paper is light, and as wide as A4 without its margins.
const PAPER = 680;
addEventListener("beforeprint", () => {
  fit(PAPER);
  applyTheme(true);
});
addEventListener("afterprint", () => {
  fit();
  applyTheme(false);
});

document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
// On a small screen the figures come first.
if (innerWidth < 600) document.querySelectorAll(".source details").forEach((d) => d.removeAttribute("open"));
draw();
new ResizeObserver(() => fit()).observe(document.getElementById("main"));
