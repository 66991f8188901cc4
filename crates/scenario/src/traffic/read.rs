//! Reads tables of traffic.

use std::fs::File;
use std::path::Path;

use sched::{Nanos, Rate};
use tcp::Config as Tcp;
use workload::{CsvError, DatagramList, OnOff, Requests, TimeLaw, TransferList};

use super::{Arrivals, Kind, Pick, Stream, Traffic};
use crate::error::ScenarioError;
use crate::reader::Table;
use crate::sections::TRAFFIC;
use crate::topology::Topology;

/// What a receiver asks for a transfer with, as the lab's does.
const REQUEST_BYTES: u64 = 16;

/// What a table of traffic is read with.
pub(crate) struct Context<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) duration: Nanos,
    pub(crate) tcp: &'a Tcp,
    /// What paths of files start from; `None` where the scenario is no file.
    pub(crate) directory: Option<&'a Path>,
}

pub(crate) fn read(root: &Table<'_>, context: &Context<'_>) -> Result<Vec<Traffic>, ScenarioError> {
    let tables = root.tables("traffic", |table| table.by_word("kind", &TRAFFIC))?;
    if tables.is_empty() {
        return Err(root.refuse("traffic", "at least one table"));
    }
    let mut all: Vec<Traffic> = Vec::new();
    for table in &tables {
        let traffic = Reader { table, context }.traffic()?;
        if all.iter().any(|other| other.name == traffic.name) {
            return Err(table.error(format!(
                "is named '{}', as another one is; it takes a name of its own",
                traffic.name
            )));
        }
        all.push(traffic);
    }
    Ok(all)
}

struct Reader<'t, 'a> {
    table: &'t Table<'a>,
    context: &'t Context<'t>,
}

impl Reader<'_, '_> {
    fn traffic(&self) -> Result<Traffic, ScenarioError> {
        let table = self.table;
        let kind_name = table.needed("kind", table.word("kind"))?;
        let name = table.text("name")?.unwrap_or_else(|| kind_name.to_owned());
        let (from, to) = (self.places("from", "left")?, self.places("to", "right")?);
        self.check_ends(&from, &to)?;
        let start = table.needed("start", table.time("start"))?;
        if start >= self.context.duration {
            return Err(
                table.wrong("start", "is not before the end of the run (scenario.duration)")
            );
        }
        let stop = if table.defines("stop") { table.time("stop")? } else { None };
        let stop = stop.unwrap_or(Nanos::MAX);
        if stop <= start {
            return Err(table.wrong("stop", "is not later than start"));
        }
        let kind = self.kind(kind_name, &from, &to)?;
        // Its range ends at 63.
        let dscp = table.needed("dscp", table.count("dscp"))? as u8;
        let stop = stop.min(self.context.duration);
        let rows = table.needed("rows", table.flag("rows"))?;
        let asked_with = match &kind {
            Kind::Web { request_bytes, .. } => Some(*request_bytes),
            _ if table.defines("opens") && table.word("opens")? == Some("receiver") => {
                Some(REQUEST_BYTES)
            }
            _ => None,
        };
        Ok(Traffic { name, from, to, start, stop, dscp, rows, asked_with, kind })
    }

    fn kind(&self, name: &str, from: &[usize], to: &[usize]) -> Result<Kind, ScenarioError> {
        let table = self.table;
        let count = |key| table.needed(key, table.count(key));
        let time = |key| table.needed(key, table.time(key));
        let bytes = |key| table.needed(key, table.bytes(key));
        Ok(match name {
            "transfers" => {
                let tcp = self.tcp()?;
                let payload = f64::from(tcp.mss);
                let headers = (payload + f64::from(tcp.header_bytes)) / payload;
                Kind::Transfers {
                    arrivals: self.arrivals(headers)?,
                    pick: self.pick(from, to)?,
                    tcp,
                }
            }
            "persistent" => Kind::Persistent {
                flows: count("flows")?,
                stagger: time("stagger")?,
                tcp: self.tcp()?,
            },
            "periodic" => {
                let (every, spread) = (time("every")?, time("spread")?);
                if spread > every {
                    return Err(table.wrong("spread", "is longer than every"));
                }
                let (flows, size_bytes) = (count("flows")?, bytes("size")?);
                Kind::Periodic { flows, every, spread, size_bytes, tcp: self.tcp()? }
            }
            "web" => Kind::Web {
                users: count("users")? as u32,
                think: table.needed("think", table.law("think"))?,
                objects: table.needed("objects", table.law("objects"))?,
                gap: table.needed("gap", table.law("gap"))?,
                sizes: table.needed("sizes", table.law("sizes"))?,
                request_bytes: bytes("request")?,
                connections: count("connections")? as u32,
                tcp: self.tcp()?,
            },
            "requests" => Kind::Requests {
                flows: count("flows")?,
                requests: Requests {
                    interval: time("every")?,
                    // Their ranges end below 2^32.
                    request_bytes: bytes("request")? as u32,
                    response_bytes: bytes("size")? as u32,
                },
                tcp: self.tcp()?,
            },
            "cbr" => Kind::Cbr(self.stream()?),
            "on-off" => {
                let stream = self.stream()?;
                let on: TimeLaw = table.needed("on", table.law("on"))?;
                if on.mean() == 0.0 {
                    return Err(table.refuse("on", "a law of times with a mean above 0"));
                }
                let off = table.needed("off", table.law("off"))?;
                Kind::OnOff { flows: stream.flows, stream: OnOff { peak: stream.cbr(), on, off } }
            }
            "trace" => Kind::Trace(self.list(DatagramList::from_csv)?),
            _ => Kind::OpenLoop {
                arrivals: self.arrivals(1.0)?,
                pick: self.pick(from, to)?,
                packet_bytes: bytes("packet")? as u32,
            },
        })
    }

    fn places(&self, key: &str, default: &str) -> Result<Vec<usize>, ScenarioError> {
        let topology = self.context.topology;
        let names = match self.table.names(key)? {
            Some(names) => names,
            None if topology.groups.contains_key(default) => vec![default.to_owned()],
            None => return Err(self.table.missing(key)),
        };
        topology.places(&names).map_err(|name| {
            let names = topology.names();
            self.table
                .wrong(key, &format!("names '{name}', which is not a place; there are {names}"))
        })
    }

    /// Some way joins every pair of ends that may be picked, and none is a node with itself.
    fn check_ends(&self, from: &[usize], to: &[usize]) -> Result<(), ScenarioError> {
        let topology = self.context.topology;
        if let Some(node) = from.iter().find(|node| to.contains(node)) {
            let name = &topology.nodes[*node];
            return Err(self
                .table
                .error(format!("goes from {name} to {name}; its ends must differ")));
        }
        let island = topology.islands();
        let apart = from.iter().chain(to).find(|node| island[**node] != island[from[0]]);
        match apart {
            None => Ok(()),
            Some(node) => {
                let (a, b) = (&topology.nodes[from[0]], &topology.nodes[*node]);
                Err(self.table.error(format!("has ends that no links join: {a} and {b}")))
            }
        }
    }

    fn tcp(&self) -> Result<Tcp, ScenarioError> {
        match self.table.table("tcp")? {
            None => Ok(self.context.tcp.clone()),
            Some(table) => crate::tcp_keys::read(&table, self.context.tcp),
        }
    }

    fn pick(&self, from: &[usize], to: &[usize]) -> Result<Pick, ScenarioError> {
        let pick = match self.table.needed("pick", self.table.word("pick"))? {
            "random" => Pick::Random,
            "paired" => Pick::Paired,
            _ => Pick::InTurn,
        };
        if pick == Pick::Paired && from.len() != to.len() {
            let (from, to) = (from.len(), to.len());
            let what = format!("needs as many nodes in from as in to; there are {from} and {to}");
            return Err(self.table.wrong("pick", &what));
        }
        Ok(pick)
    }

    fn stream(&self) -> Result<Stream, ScenarioError> {
        let table = self.table;
        Ok(Stream {
            flows: table.needed("flows", table.count("flows"))?,
            rate: table.needed("rate", table.rate("rate"))?,
            packet_bytes: table.needed("packet", table.bytes("packet"))? as u32,
        })
    }

    /// When and how much; `headers` is what a byte of payload is on the wire.
    fn arrivals(&self, headers: f64) -> Result<Arrivals, ScenarioError> {
        let table = self.table;
        let volume = ["load", "rate", "arrivals"];
        let given: Vec<&str> = volume.into_iter().filter(|key| table.has(key)).collect();
        if table.defines("list") && table.has("list") {
            let also = ["load", "rate", "arrivals", "sizes", "stratified"];
            if let Some(key) = also.into_iter().find(|key| table.has(key)) {
                return Err(table.wrong(key, "cannot stand beside list, which says it all"));
            }
            return self.list(TransferList::from_csv).map(Arrivals::Listed);
        }
        if let [_, second, ..] = given[..] {
            return Err(
                table.wrong(second, &format!("cannot stand beside {}; one decides", given[0]))
            );
        }
        let sizes = table.needed("sizes", table.law("sizes"))?;
        let of_rate = |rate: f64| rate / (8.0 * sizes.mean() * headers);
        let per_second = if let Some(load) = table.number("load")? {
            of_rate(load * self.rate_of_link()?.0 as f64)
        } else if let Some(rate) = table.rate("rate")? {
            of_rate(rate.0 as f64)
        } else if let Some(arrivals) = table.number("arrivals")? {
            arrivals
        } else {
            return Err(
                table.error("needs one of load, rate and arrivals: how much of it there is")
            );
        };
        let stratified = table.needed("stratified", table.flag("stratified"))?;
        Ok(Arrivals::Drawn { per_second, sizes, stratified })
    }

    fn rate_of_link(&self) -> Result<Rate, ScenarioError> {
        let topology = self.context.topology;
        let found = match self.table.text("at")? {
            None => topology.tested().next(),
            Some(name) => topology.direction(&name),
        };
        match found {
            Some((link, direction)) => Ok(topology.links[link].rates[direction]),
            None => {
                let tested: Vec<String> = topology
                    .tested()
                    .map(|(link, way)| topology.links[link].direction_name(way))
                    .collect();
                Err(self.table.refuse("at", &format!("a link, such as {}", tested.join(", "))))
            }
        }
    }

    /// The file that `list` names, read with `from_csv`.
    fn list<T>(&self, from_csv: fn(File, &str) -> Result<T, CsvError>) -> Result<T, ScenarioError> {
        let table = self.table;
        let name = table.text("list")?.ok_or_else(|| table.missing("list"))?;
        let path = Table::file(&name, self.context.directory)
            .map_err(|what| table.wrong("list", &what))?;
        let file = File::open(&path)
            .map_err(|error| table.wrong("list", &format!("cannot be read: {error}")))?;
        from_csv(file, &path.display().to_string())
            .map_err(|error| table.wrong("list", &format!("is not accepted: {error}")))
    }
}
