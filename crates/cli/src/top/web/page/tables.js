// Who has most of the link, what was dropped, what was changed.

/** A table that keeps its rows: what did not change keeps its selection and place. */
class Table {
  constructor(parent, title, columns, extra) {
    this.columns = columns;
    this.body = make("tbody");
    this.caption = make("h2", {}, title);
    this.note = make("p", { class: "note" });
    const head = make("tr", {}, ...columns.map(({ name, kind }) => make("th", { scope: "col", class: kind ?? "" }, name)));
    this.scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("thead", {}, head), this.body));
    this.frame = make("section", { class: "table" }, this.caption, ...(extra ? [extra] : []), this.note, this.scroll);
    parent.append(this.frame);
  }

  set(rows, note) {
    setText(this.note, note ?? "");
    this.scroll.hidden = !rows.length;
    while (this.body.rows.length > rows.length) this.body.lastElementChild.remove();
    rows.forEach((row, at) => {
      const shown = this.body.rows[at] ?? this.body.appendChild(make("tr", {}, ...this.columns.map(({ kind }) => make("td", { class: kind ?? "" }))));
      row.forEach((text, column) => setText(shown.cells[column], text));
    });
  }
}

let tables = null;
let flowsBy = "biggest";

const makeTables = () => {
  const parent = document.getElementById("tables");
  const left = parent.appendChild(make("div", { class: "stack" }));
  const choose = make("div", { role: "group", "aria-label": "Which flows" });
  for (const which of ["biggest", "newest"]) {
    choose.append(make("button", { type: "button", "aria-pressed": String(which === flowsBy), onclick: (event) => {
      flowsBy = which;
      for (const button of choose.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      refresh();
    } }, which));
  }
  const right = parent.appendChild(make("div", { class: "stack" }));
  const number = "number";
  const lesser = "number lesser";
  return {
    hosts: new Table(left, "Hosts", [{ name: "host" }, { name: "flows", kind: number }, { name: "now", kind: number }, { name: "sent", kind: number }]),
    flows: new Table(right, "Flows", [
      { name: "flow", kind: "flow" }, { name: "lane" }, { name: "now", kind: number }, { name: "sent", kind: number }, { name: "excess", kind: lesser },
      { name: "age", kind: lesser }, { name: "dropped", kind: lesser }, { name: "marked", kind: lesser },
    ], choose),
    drops: new Table(left, "Dropped since it was attached", [{ name: "reason" }, { name: "lane" }, { name: "packets", kind: number }]),
    changes: new Table(left, "Changes", [{ name: "when" }, { name: "what" }]),
    decisions: new Table(right, "Decisions", [{ name: "when" }, { name: "reason" }, { name: "rate, and the evidence", kind: "words" }]),
  };
};

const laneNames = (status, bins) => (lane) => (lane === null || lane === undefined ? "" : bins.lanes[lane]?.name ?? String(lane));

const drawTables = (status, bins) => {
  tables ??= makeTables();
  const name = laneNames(status, bins);
  const byMarks = status.engine === "marks";
  const hosts = status.busiest_hosts ?? [];
  tables.hosts.set(
    hosts.map((host) => [host.host, count(host.flows), bits(host.arriving_bps), bytes(host.sent.bytes)]),
    hosts.length
      ? ""
      : byMarks ? "Marks do not tell hosts." : status.biggest_flows ? "None: there is no traffic, or the discipline does not share by hosts." : "Inside the kernel, fq-lanes alone tells hosts.",
  );
  const flows = status[`${flowsBy}_flows`] ?? [];
  tables.flows.set(
    flows.map((flow) => [
      flow.flow, flow.standing ? `${name(flow.standing.lane)} ${flow.standing.tier}` : name(flow.lane), bits(flow.arriving_bps), bytes(flow.sent.bytes),
      flow.standing ? bytes(flow.standing.excess_bytes) : "", duration(flow.age_ns), count(flow.dropped_packets), count(flow.marked_packets),
    ]),
    byMarks
      ? flowsBy === "biggest" ? "Long flows of the last 30 s; counted since they became long" : "Marks tell long flows only."
      : flows.length ? "Of the last 30 s" : status.biggest_flows ? "None in the last 30 s." : "Inside the kernel, fq-lanes alone tells single flows.",
  );
  const drops = status.drops.filter((drop) => drop.packets > 0);
  tables.drops.set(drops.map((drop) => [drop.reason, name(drop.lane), count(drop.packets)]), drops.length ? "" : "None.");
  const changes = [...bins.changes].reverse().slice(0, 20);
  tables.decisions.frame.hidden = !bins.isFollowed;
  const decisions = bins.decisions.slice(-20).reverse();
  tables.decisions.set(decisions.map(({ at, reason, text }) => [clock(at), reason, text]), decisions.length ? "The latest 20" : "None in the time shown.");
  tables.changes.set(changes.map(({ at, text }) => [clock(at), text]), changes.length ? "" : "None in the time shown.");
};

/** The numbers at the top. */
const drawTiles = (status, bins) => {
  const tiles = document.getElementById("tiles");
  const sum = (values) => values.reduce((all, value) => all + (value ?? 0), 0);
  const rate = sum(bins.lanes.map((lane) => latest(lane.sent)));
  const lately = Math.max(Math.round(5000 / bins.step), 1);
  const list = [["rate", bits(rate), status.rate_bps ? `of ${bits(status.rate_bps)}` : "unlimited"]];
  for (const lane of bins.lanes) {
    const wait = quantile(waitsUntil(lane, bins.x.length, lately), 0.99);
    if (isWaitTold(bins)) list.push([`${lane.name} waits`, wait === null ? "–" : time(wait), "p99 of 5 s"]);
  }
  const backlog = sum(status.lanes.map((lane) => lane.backlog_bytes));
  list.push(["queued", bytes(backlog), status.rate_bps ? `${time((backlog * 8e9) / status.rate_bps)} to send` : ""]);
  list.push(["flows", count(status.flows), status.flow_bound ? `room for ${count(status.flow_bound)}` : ""]);
  const dropped = sum(status.drops.map((drop) => drop.packets));
  list.push(["dropped", count(dropped), `${perSecond(sum([...bins.drops.values()].map(latest)))} now`]);
  list.push(["marked", count(status.marked), `${perSecond(latest(bins.marked) ?? 0)} now`]);
  while (tiles.children.length > list.length) tiles.lastElementChild.remove();
  list.forEach((texts, at) => {
    const tile = tiles.children[at] ?? tiles.appendChild(make("div", {}, make("dt"), make("dd"), make("dd", { class: "more" })));
    texts.forEach((text, part) => setText(tile.children[part], text));
  });
};
