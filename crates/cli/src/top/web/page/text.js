// Numbers in words, and elements.

const scaled = (value, step, units) => {
  let at = 0;
  while (Math.abs(value) >= step && at + 1 < units.length) {
    value /= step;
    at += 1;
  }
  const digits = value === 0 || Math.abs(value) >= 100 || (at === 0 && step === 1024) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[at]}`;
};
const short = (text) => text.replace(/(\.\d*?)0+ /, "$1 ").replace(/\. /, " ");

const bits = (value) => scaled(value, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const time = (ns) => scaled(ns / 1000, 1000, ["µs", "ms", "s"]);
const count = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 1 });
const perSecond = (value) => `${count(value)}/s`;

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);

const duration = (ns) => {
  const seconds = Math.floor(ns / 1e9);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([unit]) => seconds >= unit);
  if (first < 0) return `${(ns / 1e9).toFixed(1)} s`;
  const [unit, name] = parts[first];
  const next = parts[first + 1];
  const rest = next ? Math.floor((seconds % unit) / next[0]) : 0;
  return rest ? `${Math.floor(seconds / unit)} ${name} ${rest} ${next[1]}` : `${Math.floor(seconds / unit)} ${name}`;
};

/** An element with what it is to have; children are elements or texts. */
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") element.addEventListener("click", value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
};

/** Sets a text where it is another one: what did not change keeps its selection. */
const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
/** The colour of a lane: the first is the youngest, the last the oldest. */
const laneColour = (at, lanes) => theme(at === 0 ? "lane-0" : at === lanes - 1 ? "lane-2" : at === 1 ? "lane-1" : "lane-3");
