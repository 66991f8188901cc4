"use strict";
// Lets the key set one scheduler apart in all charts.
const buttons = [...document.querySelectorAll(".key button")];
function choose(place) {
  const chosen = buttons[place].getAttribute("aria-pressed") !== "true";
  buttons.forEach((button, other) => {
    button.setAttribute("aria-pressed", String(chosen && other === place));
  });
  for (const group of document.querySelectorAll(".chart [class^=series-]")) {
    group.style.opacity = chosen && group.getAttribute("class") !== `series-${place}` ? 0.12 : "";
  }
}
buttons.forEach((button, place) => button.addEventListener("click", () => choose(place)));
