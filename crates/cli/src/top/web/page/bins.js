// From looks to what a chart has: bins of time, the same for all charts.

/** The most bins that a chart has: more would be narrower than a pixel of a telephone. */
const MOST_BINS = 300;
/** What one bin may be, in milliseconds, so that bins stay where they are as time goes on. */
const STEPS = [250, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000];

/** The bounds of a bucket of waits, in nanoseconds; the last one is open. */
const bucketFrom = (at) => (at === 0 ? 512 : 2 ** (at + 9));
const bucketTo = (at) => 2 ** (at + 10);

/** A wait that this part of the packets stayed below, in nanoseconds; null without packets. */
const quantile = (waits, part) => {
  let all = 0;
  for (const packets of waits.values()) all += packets;
  if (!all) return null;
  let before = 0;
  for (const at of [...waits.keys()].sort((a, b) => a - b)) {
    const packets = waits.get(at);
    if (before + packets >= all * part) {
      return bucketFrom(at) * (bucketTo(at) / bucketFrom(at)) ** ((all * part - before) / packets);
    }
    before += packets;
  }
  return null;
};

const stepOf = (windowMs, intervalMs) =>
  STEPS.find((step) => step >= intervalMs && windowMs / step <= MOST_BINS) ?? Math.max(STEPS.at(-1), intervalMs);

/**
 * What happened to one way from `from` to `to`, in bins. A look tells of the time since the one before, which may be parts of
 * several bins: looks come late now and then.
 */
const binned = (samples, way, from, to, step) => {
  const first = Math.floor(from / step);
  const length = Math.floor(to / step) - first + 1;
  const x = Array.from({ length }, (_, at) => ((first + at + 0.5) * step) / 1000);
  const column = () => new Array(length).fill(null);
  const made = { x, step, lanes: [], drops: new Map(), marked: column(), flows: column(), limit: column(), long: column(), changes: [], extra: column(), floor: column(), ceiling: column(), decisions: [], isFollowed: false, isLongCounted: false };
  const seconds = new Array(length).fill(0);
  const add = (values, at, value) => { values[at] = (values[at] ?? 0) + value; };
  const addPart = (seen, at, part) => {
    seconds[at] += (seen.nanos / 1e9) * part;
    add(made.marked, at, seen.marked * part);
    if (seen.became_long !== undefined) {
      made.isLongCounted = true;
      add(made.long, at, seen.became_long * part);
    }
    seen.lanes.forEach((lane, index) => {
      const into = made.lanes[index];
      add(into.sent, at, lane.sent_bytes * 8 * part);
      add(into.packets, at, lane.sent_packets * part);
      const waits = into.waits[at] ??= new Map();
      for (const [bucket, packets] of lane.waits) waits.set(bucket, (waits.get(bucket) ?? 0) + packets * part);
    });
    for (const [reason, lane, packets] of seen.drops ?? []) {
      const name = lane === null ? reason : `${reason}, ${seen.lanes[lane]?.name ?? lane}`;
      if (!made.drops.has(name)) made.drops.set(name, column());
      add(made.drops.get(name), at, packets * part);
    }
  };
  for (const sample of samples) {
    if (sample.at_ms < from || sample.at_ms > to) continue;
    for (const note of sample.notes ?? []) made.changes.push({ at: sample.at_ms / 1000, text: note });
    const seen = sample.ways.find((one) => one.way === way);
    if (!seen) continue;
    for (const text of seen.changes ?? []) made.changes.push({ at: sample.at_ms / 1000, text });
    if (seen.auto) made.isFollowed = true;
    for (const decision of seen.auto?.decisions ?? []) made.decisions.push({ ...decision, at: decision.at_ms / 1000 });
    seen.lanes.forEach((lane, index) => {
      made.lanes[index] ??= { sent: column(), packets: column(), backlog: column(), waits: column() };
      made.lanes[index].name = lane.name;
    });
    const [start, end] = [sample.at_ms - seen.nanos / 1e6, sample.at_ms];
    for (let at = Math.max(Math.floor(start / step) - first, 0); at <= Math.floor(end / step) - first; at += 1) {
      made.flows[at] = seen.flows;
      made.limit[at] = seen.limit_bps;
      if (seen.auto) {
        made.floor[at] = seen.auto.floor_bps;
        made.ceiling[at] = seen.auto.ceiling_bps;
        if ((seen.auto.extra_ns ?? null) !== null) made.extra[at] = Math.max(made.extra[at] ?? 0, seen.auto.extra_ns);
      }
      seen.lanes.forEach((lane, index) => {
        const { backlog } = made.lanes[index];
        backlog[at] = Math.max(backlog[at] ?? 0, lane.backlog_bytes);
      });
      const overlap = Math.min(end, (first + at + 1) * step) - Math.max(start, (first + at) * step);
      if (overlap > 0) addPart(seen, at, overlap / (end - start));
    }
  }
  const rate = (values) => values.forEach((value, at) => { if (value !== null) values[at] = value / seconds[at]; });
  made.lanes.forEach((lane) => { rate(lane.sent); rate(lane.packets); });
  made.drops.forEach((values) => {
    seconds.forEach((time, at) => { if (time) values[at] ??= 0; });
    rate(values);
  });
  rate(made.marked);
  rate(made.long);
  return made;
};

/** Waits of a lane in so many bins before one, together. */
const waitsUntil = (lane, end, bins) => {
  const all = new Map();
  for (const waits of lane.waits.slice(Math.max(end - bins, 0), end)) {
    for (const [bucket, packets] of waits ?? []) all.set(bucket, (all.get(bucket) ?? 0) + packets);
  }
  return all;
};

/** The latest value that there is. */
const latest = (values) => {
  for (let at = values.length - 1; at >= 0; at -= 1) if (values[at] !== null) return values[at];
  return null;
};
