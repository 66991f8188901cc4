"use strict";
// Draws every chart, and lets the key set one scheduler apart in all of them.
const views = [];
const buttons = [...document.querySelectorAll(".key button")];
async function draw(place) {
  const spec = JSON.parse(place.querySelector("script").textContent);
  const target = document.createElement("div");
  place.append(target);
  const actions = { export: true, source: false, compiled: false, editor: false };
  const { view } = await vegaEmbed(target, spec, { renderer: "svg", actions });
  views.push(view);
}
async function choose(button) {
  const chosen = button.getAttribute("aria-pressed") !== "true";
  for (const other of buttons) {
    const same = other.dataset.name === button.dataset.name;
    other.setAttribute("aria-pressed", String(chosen && same));
  }
  const name = chosen ? JSON.parse(button.dataset.name) : "";
  await Promise.all(views.map((view) => view.signal("chosen", name).runAsync()));
}
for (const button of buttons) button.addEventListener("click", () => choose(button));
Promise.all([...document.querySelectorAll(".chart")].map(draw)).then(
  () => { document.documentElement.dataset.drawn = String(views.length); },
  (error) => { document.documentElement.dataset.drawn = "failed"; throw error; });
