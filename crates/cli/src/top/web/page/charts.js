// Which charts there are, and what each is fed.

const nothing = () => null;
const isWaitTold = (bins) => bins.lanes.some((lane) => lane.waits.some((waits) => waits && waits.size));

const translucent = (colour, part) => `color-mix(in srgb, ${colour} ${part * 100}%, transparent)`;

/** What each lane sends, on top of each other, below what it is paced for. */
const rateChart = (parent, names) => {
  const lanes = names.map((name, at) => ({ name, colour: () => laneColour(at, names.length), width: 1 }));
  const fill = (at) => translucent(laneColour(at, names.length), 0.55);
  lanes[0].fill = () => fill(0);
  const chart = new Chart(parent, {
    title: "Rate",
    note: "What leaves the queue, by lane, and what it is paced for",
    height: 220,
    series: [...lanes, { name: "paced for", colour: () => theme("text"), dash: [6, 4], width: 1.5, fixed: true, paths: uPlot.paths.stepped({ align: 1 }) }],
    // The band from a sum to the one below; its number is that of the upper one.
    bands: () => names.slice(1).map((_, at) => ({ series: [at + 2, at + 1], fill: fill(at + 1) })),
    y: { scale: { range: (_, low, high) => [0, Math.max(high * 1.08, 1000)] }, axis: { values: (_, splits) => splits.map((value) => short(bits(value))) } },
    value: bits,
  });
  chart.feed = (bins, range) => {
    const sums = [];
    bins.lanes.forEach((lane, at) => {
      const shown = chart.hidden.has(at) ? lane.sent.map((value) => (value === null ? null : 0)) : lane.sent;
      sums.push(at === 0 ? shown : shown.map((value, bin) => (value === null ? null : value + (sums[at - 1][bin] ?? 0))));
    });
    const columns = [...bins.lanes.map((lane) => lane.sent), bins.limit];
    chart.set([bins.x, ...sums, bins.limit], range, valueOf(columns), bins.changes);
  };
  return chart;
};

/** The value of a column at a bin, or its latest. */
const valueOf = (columns) => (at, bin) => (bin === null ? latest(columns[at]) : columns[at][bin]);

/** A value without neighbours is no line: it is drawn as a point. */
const alone = (plot, at) => {
  const values = plot.data[at];
  return values.flatMap((value, bin) => (value !== null && (values[bin - 1] ?? null) === null && (values[bin + 1] ?? null) === null ? [bin] : []));
};
/** Waits of so much time make one quantile: those of a quarter of a second would only flicker. */
const QUANTILE_MS = 1000;
/** Where charts stand in two columns. */
const isWide = () => innerWidth >= 1100;

/** Median and 99th percentile of waits, on a scale that has both a keystroke's and a download's. */
const waitChart = (parent, names) => {
  const series = names.flatMap((name, at) => {
    const colour = () => laneColour(at, names.length);
    return [
      { name: `${name} p99`, colour, width: 2, points: { show: true, size: 4, filter: alone } },
      { name: `${name} median`, colour, width: 1.5, dash: [3, 3] },
    ];
  });
  const chart = new Chart(parent, {
    title: "Waits",
    note: "How long packets were queued that left in the second before; logarithmic",
    // As high as the heat maps beside it.
    height: () => (isWide() && names.length > 1 ? 187 * names.length - 120 : 220),
    series,
    y: {
      // Less than 10 µs is no wait that anybody looks for.
      scale: { distr: 3, log: 10, range: (_, low, high) => [10 ** Math.floor(Math.log10(Math.max(low ?? 0, 1e4))), 10 ** Math.ceil(Math.log10(Math.max(high ?? 0, 1e6)))] },
      axis: { filter: (_, splits) => splits.map((value) => (/^10*$/.test(Math.round(value)) ? value : null)), values: (_, splits) => splits.map((value) => (value === null ? null : short(time(value)))) },
    },
    value: time,
  });
  chart.feed = (bins, range) => {
    const columns = bins.lanes.flatMap((lane) => {
      const together = lane.waits.map((waits, bin) => (waits ? waitsUntil(lane, bin + 1, Math.ceil(QUANTILE_MS / bins.step)) : null));
      return [0.99, 0.5].map((part) => together.map((waits) => (waits ? quantile(waits, part) : null)));
    });
    chart.set([bins.x, ...columns], range, valueOf(columns), bins.changes);
  };
  return chart;
};

/** Waits of one lane: a column a bin, a row a bucket, the darker the more packets. */
const heatChart = (parent, name, at, lanes) => {
  const log = (ns) => Math.log2(ns);
  let rows = [13, 27];
  let columns = [];
  let most = 1;
  const chart = new Chart(parent, {
    title: `Waits of ${name}`,
    kind: "heat",
    height: lanes > 1 ? 130 : 220,
    series: [{ name: "packets/s", colour: () => laneColour(at, lanes), invisible: true, fixed: true, paths: nothing }],
    y: {
      scale: { range: () => rows },
      axis: {
        splits: () => Array.from({ length: 8 }, (_, power) => log(10 ** (power + 3))).filter((value) => value >= rows[0] && value <= rows[1]),
        values: (_, splits) => splits.map((value) => short(time(Math.round(2 ** value)))),
      },
    },
    value: perSecond,
    draw: (plot) => {
      const { ctx, bbox } = plot;
      const width = Math.abs(plot.valToPos(chart.step / 1000, "x", true) - plot.valToPos(0, "x", true));
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.fillStyle = laneColour(at, lanes);
      columns.forEach((waits, bin) => {
        if (!waits) return;
        const left = Math.round(plot.valToPos(plot.data[0][bin] - chart.step / 2000, "x", true));
        const right = Math.round(plot.valToPos(plot.data[0][bin] + chart.step / 2000, "x", true));
        for (const [bucket, packets] of waits) {
          const top = Math.round(plot.valToPos(log(bucketTo(bucket)), "y", true));
          const bottom = Math.round(plot.valToPos(log(bucketFrom(bucket)), "y", true));
          ctx.globalAlpha = 0.12 + 0.88 * (Math.log1p(packets) / Math.log1p(most));
          ctx.fillRect(left, top, Math.max(right - left, Math.min(width, 1)), bottom - top);
        }
      });
      ctx.restore();
    },
  });
  chart.feed = (bins, range, heat) => {
    rows = heat.rows;
    most = heat.most;
    columns = bins.lanes[at].waits;
    chart.step = bins.step;
    const packets = bins.lanes[at].packets;
    chart.set([bins.x, packets.map((value) => (value === null ? null : rows[0]))], range, valueOf([packets]), bins.changes);
  };
  return chart;
};

/** What the heat maps have in common, so that they can be compared: rows, and how many packets are dark. */
const heatOf = (bins) => {
  let [low, high, most] = [Infinity, -Infinity, 1];
  for (const lane of bins.lanes) {
    for (const waits of lane.waits) {
      for (const [bucket, packets] of waits ?? []) {
        low = Math.min(low, bucket);
        high = Math.max(high, bucket);
        most = Math.max(most, packets);
      }
    }
  }
  if (low > high) [low, high] = [4, 16];
  return { rows: [Math.min(low, high - 6) + 9, high + 10.2], most };
};

/** A strip for each lane: above its middle what it sends, below what waits meanwhile. */
const stripChart = (parent, names) => {
  let strips = [];
  let most = { sent: 1, backlog: 1 };
  const chart = new Chart(parent, {
    title: "Who waits for whom",
    note: "A strip for each lane: upwards what it sends, downwards what waits in it meanwhile",
    kind: "strips",
    height: Math.max(64 * names.length + 28, 220),
    series: names.map((name, at) => ({ name: `${name} waiting`, colour: () => laneColour(at, names.length), invisible: true, fixed: true, paths: nothing })),
    y: {
      scale: { range: () => [0, names.length] },
      axis: { splits: () => names.map((_, at) => names.length - at - 0.5), values: () => names, grid: { show: false } },
    },
    value: bytes,
    draw: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      strips.forEach(({ sent, backlog }, at) => {
        const middle = plot.valToPos(names.length - at - 0.5, "y", true);
        const half = (bbox.height / names.length) * 0.45;
        const colour = laneColour(at, names.length);
        ctx.fillStyle = theme("grid");
        ctx.fillRect(bbox.left, middle, bbox.width, devicePixelRatio);
        for (const [values, of, direction, part] of [[sent, most.sent, -1, 1], [backlog, most.backlog, 1, 0.5]]) {
          ctx.fillStyle = colour;
          ctx.globalAlpha = part;
          values.forEach((value, bin) => {
            if (!value) return;
            const left = Math.max(Math.round(plot.valToPos(plot.data[0][bin] - chart.step / 2000, "x", true)), bbox.left);
            const right = Math.min(Math.round(plot.valToPos(plot.data[0][bin] + chart.step / 2000, "x", true)), bbox.left + bbox.width);
            const height = Math.max(Math.min(value / of, 1) * half, devicePixelRatio);
            if (right > left) ctx.fillRect(left, direction < 0 ? middle - height : middle, right - left, height);
          });
          ctx.globalAlpha = 1;
        }
      });
      ctx.restore();
    },
  });
  chart.feed = (bins, range) => {
    strips = bins.lanes;
    // A burst is cut off rather than that all else is flat beside it.
    const usual = (values) => values.filter((value) => value).sort((a, b) => a - b);
    const high = (column) => Math.max(1, ...bins.lanes.map((lane) => usual(lane[column])).map((values) => values[Math.floor(values.length * 0.97)] ?? 0));
    most = { sent: high("sent"), backlog: high("backlog") };
    chart.step = bins.step;
    const columns = bins.lanes.map((lane) => lane.backlog);
    chart.set([bins.x, ...columns.map((column) => column.map((value) => (value === null ? null : 0)))], range, valueOf(columns), bins.changes);
  };
  return chart;
};

/** Drops by reason and lane, and marks. */
const dropChart = (parent, reasons) => {
  const colours = ["drop-0", "drop-1", "drop-2", "drop-3"];
  const series = reasons.map((name, at) => ({ name, colour: () => theme(colours[at % colours.length]), paths: uPlot.paths.stepped({ align: 0 }), fill: () => translucent(theme(colours[at % colours.length]), 0.2) }));
  const chart = new Chart(parent, {
    title: "Drops and marks",
    note: reasons.length ? "Packets a second, by reason and lane" : "Packets a second, by reason and lane: no packet was dropped",
    height: 160,
    series: [...series, { name: "marked (ECN)", colour: () => theme("mark"), paths: uPlot.paths.stepped({ align: 0 }) }],
    y: { scale: { range: (_, low, high) => [0, Math.max(high * 1.1, 10)] }, axis: { values: (_, splits) => splits.map(perSecond) } },
    value: perSecond,
  });
  chart.feed = (bins, range) => {
    const none = bins.marked.map((value) => (value === null ? null : 0));
    const columns = [...reasons.map((reason) => bins.drops.get(reason) ?? none), bins.marked];
    chart.set([bins.x, ...columns], range, valueOf(columns), bins.changes);
  };
  return chart;
};

/** Reasons of decisions: colour, and the shape that tells them apart without it. */
const REASONS = [
  { name: "queue", colour: "drop-0", shape: [[-1, -1], [1, -1], [0, 1]] },
  { name: "drained", colour: "lane-3", shape: [[-1, 0], [0, -1], [1, 0], [0, 1]] },
  { name: "room", colour: "lane-0", shape: [[-1, 1], [1, 1], [0, -1]] },
  { name: "idle", colour: "line", shape: [[-1, -0.4], [1, -0.4], [1, 0.4], [-1, 0.4]] },
  { name: "blind", colour: "text", shape: [[-1, -1], [1, -1], [1, 1], [-1, 1]] },
];

/** A rate that follows the link: each decision where it leads to. */
const decisionChart = (parent) => {
  let decisions = [];
  const chart = new Chart(parent, {
    title: "Decisions",
    note: " ",
    kind: "decisions",
    height: 220,
    series: [
      { name: "rate", colour: () => theme("text"), width: 1.5, fixed: true, paths: uPlot.paths.stepped({ align: 1 }) },
      { name: "floor", colour: () => theme("line"), dash: [2, 4], fixed: true },
      { name: "ceiling", colour: () => theme("line"), dash: [2, 4], fixed: true },
      ...REASONS.map(({ name, colour }) => ({ name, colour: () => theme(colour), invisible: true, fixed: true, paths: nothing, value: count })),
    ],
    y: { scale: { range: (_, low, high) => [0, Math.max(high * 1.08, 1000)] }, axis: { values: (_, splits) => splits.map((value) => short(bits(value))) } },
    value: bits,
    draw: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      for (const { at, to_bps, reason } of decisions) {
        const { colour, shape } = REASONS.find((one) => one.name === reason) ?? REASONS.at(-1);
        const [x, y] = [plot.valToPos(at, "x", true), plot.valToPos(to_bps, "y", true)];
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        const size = (reason === "queue" ? 5 : 3.5) * devicePixelRatio;
        ctx.fillStyle = theme(colour);
        ctx.beginPath();
        shape.forEach(([right, down], corner) => ctx[corner ? "lineTo" : "moveTo"](x + right * size, y + down * size));
        ctx.fill();
      }
      ctx.restore();
    },
  });
  chart.feed = (bins, range) => {
    decisions = bins.decisions;
    chart.before = (seconds) => decisions.findLast(({ at }) => at <= seconds);
    chart.step = bins.step;
    const counts = REASONS.map(({ name }) => bins.x.map((middle) => {
      const half = bins.step / 2000;
      return decisions.filter(({ at, reason }) => reason === name && at >= middle - half && at < middle + half).length;
    }));
    const zero = bins.x.map(() => null);
    const values = (at, bin) => {
      if (at >= 3) return bin === null ? counts[at - 3].reduce((all, value) => all + value, 0) : counts[at - 3][bin];
      return valueOf([bins.limit, bins.floor, bins.ceiling])(at, bin);
    };
    chart.set([bins.x, bins.limit, bins.floor, bins.ceiling, ...REASONS.map(() => zero)], range, values, bins.changes);
  };
  const tell = chart.tell.bind(chart);
  chart.tell = () => {
    tell();
    const bin = chart.held();
    const seconds = bin === null ? Infinity : chart.data[0][bin] + chart.step / 2000;
    const shown = chart.before?.(seconds);
    setText(chart.noteElement, shown ? `${clock(shown.at)} ${shown.reason}: ${shown.text}` : "None in the time shown");
  };
  return chart;
};

/** What the decisions go by. */
const extraChart = (parent) => {
  const chart = new Chart(parent, {
    title: "Extra delay",
    note: "How much longer than at best round trips beyond this machine took",
    height: 220,
    series: [{ name: "extra delay", colour: () => theme("drop-0"), width: 1.5, fixed: true, fill: () => translucent(theme("drop-0"), 0.2) }],
    y: { scale: { range: (_, low, high) => [0, Math.max(high * 1.1, 3e7)] }, axis: { values: (_, splits) => splits.map((value) => short(time(value))) } },
    value: time,
  });
  chart.feed = (bins, range) => chart.set([bins.x, bins.extra], range, valueOf([bins.extra]), bins.changes);
  return chart;
};

/** How many flows there are, and how many become long, if that is counted. */
const flowChart = (parent, isLongCounted) => {
  const chart = new Chart(parent, {
    title: "Flows remembered",
    note: `Entries of the flow table${isLongCounted ? ", and how many flows become long in a second" : ""}`,
    height: 160,
    series: [
      { name: "flows", colour: () => theme("lane-1") },
      { name: "become long", colour: () => theme("lane-2"), dash: [3, 3] },
    ].slice(0, isLongCounted ? 2 : 1),
    y: { scale: { range: (_, low, high) => [0, Math.max(high * 1.1, 5)] }, axis: { values: (_, splits) => splits.map(count) } },
    value: count,
  });
  chart.feed = (bins, range) => {
    const columns = isLongCounted ? [bins.flows, bins.long] : [bins.flows];
    chart.set([bins.x, ...columns], range, valueOf(columns), bins.changes);
  };
  return chart;
};

let shape = null;
/** The chart of drops, and the reasons that it has: none goes, so that entries stay where they are. */
let drops = null;
let reasons = [];

/** Draws all charts. They are made anew where there are other lanes than before, that of drops for a new reason. */
const drawCharts = (bins, range) => {
  const parent = document.getElementById("charts");
  const names = bins.lanes.map((lane) => lane.name);
  const wanted = JSON.stringify([names, isWaitTold(bins), bins.isFollowed, bins.isLongCounted]);
  const isNew = [...bins.drops.keys()].some((reason) => !reasons.includes(reason));
  if (isNew) reasons = [...new Set([...reasons, ...bins.drops.keys()])].sort();
  if (wanted !== shape) {
    [...charts].forEach((chart) => chart.remove());
    parent.replaceChildren();
    shape = wanted;
    reasons = [...bins.drops.keys()].sort();
    if (!names.length) return;
    rateChart(parent, names);
    stripChart(parent, names);
    if (bins.isFollowed) {
      decisionChart(parent);
      extraChart(parent);
    }
    if (isWaitTold(bins)) {
      waitChart(parent, names);
      const heats = make("div", { class: "heats" });
      parent.append(heats);
      names.forEach((name, at) => heatChart(heats, name, at, names.length));
    }
    drops = dropChart(parent, reasons);
    flowChart(parent, bins.isLongCounted);
  } else if (isNew) {
    const former = drops;
    drops = dropChart(parent, reasons);
    former.frame.replaceWith(drops.frame);
    former.remove();
  }
  const heat = heatOf(bins);
  charts.forEach((chart) => chart.feed(bins, range, heat));
};
