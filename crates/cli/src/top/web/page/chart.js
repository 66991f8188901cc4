// One chart: a frame, a legend whose entries can be switched off, and uPlot.

const charts = [];
const FONT = "12px system-ui, sans-serif";

/** Room for the labels at the left, the same in all charts, so that times are below each other. */
const leftRoom = () => (innerWidth < 600 ? 66 : 72);

class Chart {
  /**
   * `series`: name, colour and more of each; `data`: gives the columns; `value`: tells one in words; `y`: the axis.
   */
  constructor(parent, { title, note, height, series, y, value, bands, draw, kind }) {
    this.hidden = new Set();
    this.value = value;
    this.series = series;
    this.height = typeof height === "function" ? height : () => height;
    this.noteElement = make("p", { class: "note" }, note ?? "");
    this.legend = make("div", { class: "legend" });
    this.host = make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${title}: chart, left and right move the time` });
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.frame = make("section", { class: `chart ${kind ?? ""}` }, make("h2", {}, title), this.noteElement, this.legend, this.host);
    parent.append(this.frame);
    this.options = { y, bands, draw };
    this.values = series.map((one, at) => {
      const shown = make("span", { class: "value" });
      const swatch = make("span", { class: `swatch ${one.dash ? "dashed" : ""}` });
      const entry = one.fixed ? make("span", {}, swatch, `${one.name} `, shown)
        : make("button", { type: "button", "aria-pressed": "true", onclick: () => this.toggle(at) }, swatch, `${one.name} `, shown);
      this.legend.append(entry);
      return { shown, swatch, entry };
    });
    this.build();
    charts.push(this);
  }

  build() {
    this.plot?.destroy();
    const axis = { font: FONT, stroke: theme("faint"), grid: { stroke: theme("grid"), width: 1 }, ticks: { show: false } };
    const { y, bands, draw } = this.options;
    this.series.forEach((one, at) => {
      this.values[at].swatch.style.setProperty("--swatch", one.colour());
    });
    this.plot = new uPlot({
      width: Math.max(this.host.clientWidth, 100),
      height: this.height(),
      padding: [8, 24, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        sync: { key: "time", scales: ["x", null] },
        points: { size: 6 },
      },
      scales: { x: { time: true, range: () => this.range ?? [0, 1] }, y: y.scale ?? {} },
      axes: [
        { ...axis, size: 28, space: 70, values: (_, splits) => splits.map(clock) },
        { ...axis, size: leftRoom(), gap: 4, space: 28, ...y.axis, grid: { ...axis.grid, ...(y.axis.filter && { filter: y.axis.filter }), ...y.axis.grid } },
      ],
      series: [{}, ...this.series.map((one, at) => ({
        label: one.name,
        stroke: one.invisible ? "transparent" : one.colour(),
        width: one.width ?? 1.5,
        dash: one.dash,
        fill: one.fill?.(),
        paths: one.paths,
        points: one.points ?? { show: false },
        show: !this.hidden.has(at),
      }))],
      bands: bands?.(),
      hooks: {
        draw: [(plot) => { draw?.(plot, this); drawChanges(plot, this); }],
        setCursor: [() => this.tell()],
      },
    }, this.data ?? [[], ...this.series.map(() => [])], this.host);
  }

  toggle(at) {
    const isShown = this.hidden.has(at);
    if (isShown) this.hidden.delete(at);
    else this.hidden.add(at);
    this.values[at].entry.setAttribute("aria-pressed", String(isShown));
    this.plot.setSeries(at + 1, { show: isShown });
    refresh();
  }

  /** New columns, and the time that they are of. */
  set(data, range, texts, changes) {
    this.data = data;
    this.range = range;
    this.texts = texts;
    this.changes = changes;
    this.plot.setData(data);
    this.tell();
  }

  /** The bin that the cursor is at; null if it is nowhere. */
  held() {
    const { left, idx } = this.plot?.cursor ?? {};
    return left >= 0 && this.data && this.data[0][idx] !== undefined ? idx : null;
  }

  /** Values at the cursor, or the latest ones. */
  tell() {
    const at = this.held();
    this.values.forEach(({ shown }, series) => {
      const value = this.texts ? this.texts(series, at) : null;
      setText(shown, value === null || value === undefined ? "–" : (this.series[series].value ?? this.value)(value));
    });
    tellMoment();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") moveCursors(null);
    if (!step || !this.data) return;
    event.preventDefault();
    const last = this.data[0].length - 1;
    const from = this.held() ?? last;
    moveCursors(Math.min(Math.max(from + step * (event.shiftKey ? 10 : 1), 0), last));
  }

  resize() {
    const width = Math.max(this.host.clientWidth, 100);
    const height = this.height();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  remove() {
    this.plot.destroy();
    this.frame.remove();
    charts.splice(charts.indexOf(this), 1);
  }
}

/** Puts the cursor of all charts at a bin. */
const moveCursors = (index) => {
  for (const chart of charts) {
    const left = index === null ? -10 : chart.plot.valToPos(chart.data[0][index], "x");
    chart.plot.setCursor({ left, top: index === null ? -10 : 10 }, true, false);
  }
};

/** Changes of the settings, in every chart. */
const drawChanges = (plot, chart) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = theme("text");
  ctx.setLineDash([2, 3]);
  ctx.lineWidth = devicePixelRatio;
  for (const { at } of chart.changes ?? []) {
    const left = plot.valToPos(at, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

/** The time that the values are of; of the latest nothing is said. */
const tellMoment = () => {
  const chart = charts.find((one) => one.held() !== null);
  const seconds = chart && chart.data[0][chart.held()];
  const text = !chart ? "\u00a0" : `at ${clock(seconds)}, ${Math.max(Math.round(shownUntil() / 1000 - seconds), 0)} s before the end`;
  setText(document.getElementById("moment"), text);
};
