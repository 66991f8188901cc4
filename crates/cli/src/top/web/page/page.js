// The page: takes what the server tells, or what was saved, and draws it once a frame at most.

const saved = document.getElementById("saved");
const samples = [];
let begin = null;
let now = null;
let way = null;
let windowMs = 60000;
let pausedAt = null;
let isWanted = false;

const latestMs = () => samples.at(-1)?.at_ms ?? Date.now();
const shownUntil = () => pausedAt ?? latestMs();
const element = (id) => document.getElementById(id);

/** What comes and goes is told among the changes. */
const take = (sample) => {
  const before = samples.at(-1);
  if (before && sample.gone && !before.gone) sample.notes = [`gone: ${sample.gone}`];
  if (before?.gone && !sample.gone) sample.notes = ["attached again"];
  samples.push(sample);
  while (samples[0].at_ms < sample.at_ms - begin.kept_ms) samples.shift();
};

const draw = () => {
  isWanted = false;
  if (!begin || !samples.length) return;
  drawState(samples.at(-1));
  if (!now) return;
  const ways = now.attached.map((status, at) => ({ status, name: lastWays()[at] ?? status.direction }));
  if (!ways.some(({ name }) => name === way)) way = ways[0]?.name ?? null;
  const shown = ways.find(({ name }) => name === way);
  if (!shown) return;
  setText(element("what"), `${shown.status.scheduler}, ${shown.status.engine} engine, attached for ${duration(shown.status.uptime_ns)}`);
  drawButtons(ways.map(({ name }) => name));
  const to = shownUntil();
  const bins = binned(samples, way, to - windowMs, to, stepOf(windowMs, begin.interval_ms));
  drawCharts(bins, [(to - windowMs) / 1000, to / 1000]);
  drawTiles(shown.status, bins);
  drawTables(shown.status, bins);
};

/** Names of what is attached, in the order of the status. */
const lastWays = () => {
  const seen = samples.findLast((sample) => sample.ways.length);
  return seen ? seen.ways.map((one) => one.way) : [];
};

const refresh = () => {
  if (isWanted) return;
  isWanted = true;
  requestAnimationFrame(draw);
};

let isOpen = false;

const drawState = (last) => {
  const since = (sample) => clock(sample.at_ms / 1000);
  let [text, kind] = ["live", "live"];
  if (saved) [text, kind] = [`saved at ${new Date(last.at_ms).toLocaleString("en-GB")}`, ""];
  else if (!isOpen) [text, kind] = ["no connection: the server has ended, or as many pages are open as it serves; trying again", "alarm"];
  else if (last?.gone) [text, kind] = [`since ${since(firstGone())}: ${last.gone}`, "alarm"];
  else if (pausedAt) [text, kind] = [`paused at ${clock(pausedAt / 1000)}`, ""];
  setText(element("state"), text);
  element("state").className = kind;
};

const firstGone = () => {
  const there = samples.findLastIndex((sample) => !sample.gone);
  return samples[there + 1];
};

const buttons = (parent, list, isPressed, choose) => {
  if (parent.children.length !== list.length || [...parent.children].some((button, at) => button.textContent !== list[at].text)) {
    parent.replaceChildren(...list.map(({ text, value }) => make("button", { type: "button", onclick: () => { choose(value); refresh(); } }, text)));
  }
  list.forEach(({ value }, at) => parent.children[at].setAttribute("aria-pressed", String(isPressed(value))));
};

const WINDOWS = [{ text: "1 min", value: 60000, key: "1" }, { text: "5 min", value: 300000, key: "5" }, { text: "10 min", value: 600000, key: "0" }];

const drawButtons = (names) => {
  element("ways").hidden = names.length < 2;
  buttons(element("ways"), names.map((name) => ({ text: name, value: name })), (name) => name === way, (name) => { way = name; });
  buttons(element("windows"), WINDOWS, (ms) => ms === windowMs, (ms) => { windowMs = ms; });
  element("pause").setAttribute("aria-pressed", String(pausedAt !== null));
};

const pause = () => {
  pausedAt = pausedAt === null ? latestMs() : null;
  refresh();
};

const key = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const onButton = event.target.closest("button, a");
  if (event.key === " " && !onButton && !saved) {
    event.preventDefault();
    pause();
  }
  const chosen = WINDOWS.find((one) => one.key === event.key);
  if (chosen) windowMs = chosen.value;
  if (event.key === "d") {
    const names = lastWays();
    way = names[(names.indexOf(way) + 1) % names.length] ?? way;
  }
  if (chosen || event.key === "d") refresh();
};

const start = (told) => {
  begin = told;
  samples.length = 0;
  document.title = `${begin.device}: shortlane`;
  setText(element("device"), begin.device);
};

const connect = () => {
  const events = new EventSource(`stream${location.search}`);
  events.addEventListener("begin", (event) => { isOpen = true; start(JSON.parse(event.data)); });
  events.addEventListener("sample", (event) => take(JSON.parse(event.data)));
  events.addEventListener("now", (event) => { now = JSON.parse(event.data); refresh(); });
  events.addEventListener("error", () => {
    events.close();
    isOpen = false;
    drawState(samples.at(-1));
    setTimeout(connect, 2000);
  });
};

element("pause").addEventListener("click", pause);
element("save").href = `save${location.search}`;
addEventListener("keydown", key);
new ResizeObserver(() => charts.forEach((chart) => chart.resize())).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  charts.forEach((chart) => chart.build());
  refresh();
});
drawButtons([]);
if (saved) {
  const all = JSON.parse(saved.textContent);
  element("pause").hidden = true;
  element("save").hidden = true;
  start(all.begin);
  all.samples.forEach(take);
  now = all.now;
  windowMs = WINDOWS.find(({ value }) => value >= latestMs() - samples[0]?.at_ms)?.value ?? 600000;
  refresh();
} else {
  connect();
}
