// SPDX-License-Identifier: GPL-2.0-only
// What is under the pointer, or chosen with the arrow keys.

/// Shows what `describe` says of a place. `places` are the places that the arrow
/// keys walk through, in pixels of the plot.
function hover(place, plot, describe, places) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  place.append(tip);
  let chosen = -1;
  const show = (x, y) => {
    const text = describe(plot, x, y);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const left = plot.over.offsetLeft + x + plot.root.offsetLeft;
    const top = plot.over.offsetTop + y + plot.root.offsetTop;
    const right = left + tip.offsetWidth + 14 > place.clientWidth;
    tip.style.left = Math.max(0, right ? left - tip.offsetWidth - 12 : left + 12) + "px";
    tip.style.top = Math.max(0, top - tip.offsetHeight / 2) + "px";
  };
  plot.over.addEventListener("pointermove", (event) => {
    const box = plot.over.getBoundingClientRect();
    show(event.clientX - box.left, event.clientY - box.top);
  });
  plot.over.addEventListener("pointerleave", () => (tip.hidden = true));
  place.addEventListener("blur", () => (tip.hidden = true));
  place.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = places(plot);
    if (event.key === "Escape") tip.hidden = true;
    if (!step || !all.length) return;
    event.preventDefault();
    chosen = (Math.max(chosen, step < 0 ? 0 : -1) + step + all.length) % all.length;
    show(...all[chosen]);
  });
}

/// The nearest of `marks` ({x, y, text} in pixels) within a finger's width.
function nearest(marks, x, y) {
  let best = null;
  let least = 24 * 24;
  for (const mark of marks) {
    const distance = (mark.x - x) ** 2 + (mark.y - y) ** 2;
    if (distance < least) [best, least] = [mark, distance];
  }
  return best && best.text;
}
