//! From statuses to the text that is scraped.

use std::fmt;

use engine::status::{BUCKETS, Histogram, LaneCounters, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use sched::Nanos;

use super::family::{ALL, COMMON, Family, Kind, Read, Value};

/// The text of a scrape.
pub(super) fn text(statuses: Vec<Status>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Statuses(statuses)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Statuses(Vec<Status>);

type Labels = Vec<(&'static str, String)>;

impl Collector for Statuses {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in ALL {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            self.0.iter().try_for_each(|status| series(&mut metric, family, status))?;
        }
        Ok(())
    }
}

/// The series of a family for one attachment.
fn series(metric: &mut MetricEncoder<'_>, family: &Family, status: &Status) -> fmt::Result {
    let common = common(status);
    let with = |values: &[String]| -> Labels {
        let own = family.labels.iter().copied().zip(values.iter().cloned());
        common.iter().cloned().chain(own.filter(|(_, value)| !value.is_empty())).collect()
    };
    let lanes = status.lanes.iter().enumerate();
    let lane_name = |at: usize| [at.to_string()];
    match &family.read {
        Read::Whole(read) => match read(status) {
            Some(value) => single(metric, family.kind, &with(&[]), value),
            None => Ok(()),
        },
        Read::Lane(read) => {
            let mut one = |(at, lane): (usize, &LaneCounters)| {
                single(metric, family.kind, &with(&lane_name(at)), read(lane))
            };
            lanes.into_iter().try_for_each(&mut one)
        }
        Read::Times(read) => {
            let mut one = |(at, lane): (usize, &LaneCounters)| {
                times(metric, &with(&lane_name(at)), read(lane))
            };
            lanes.into_iter().try_for_each(&mut one)
        }
        Read::Drops => status.drops.iter().try_for_each(|drop| {
            let lane = drop.lane.map_or(String::new(), |lane| lane.to_string());
            let labels = with(&[drop.reason.clone(), lane]);
            single(metric, family.kind, &labels, Value::Count(drop.packets))
        }),
        Read::Decisions => {
            let decided = status.auto.iter().flat_map(|auto| &auto.decided);
            decided.into_iter().try_for_each(|(reason, times)| {
                let labels = with(std::slice::from_ref(reason));
                single(metric, family.kind, &labels, Value::Count(*times))
            })
        }
        Read::Words(read) => {
            // An info's labels are its value: they come with the common ones in one set.
            let labels: Labels = with(&read(status));
            metric.encode_info(&labels)
        }
    }
}

fn common(status: &Status) -> Labels {
    let parent = status.qdisc.as_ref().map(|qdisc| qdisc.parent.as_str());
    let parent = parent.filter(|parent| *parent != "root").unwrap_or_default();
    let values = [&status.device, status.direction.name(), parent];
    let values = values.into_iter().map(str::to_owned);
    COMMON.into_iter().zip(values).filter(|(_, value)| !value.is_empty()).collect()
}

fn single(
    metric: &mut MetricEncoder<'_>,
    kind: Kind,
    labels: &Labels,
    value: Value,
) -> fmt::Result {
    let mut one = metric.encode_family(labels)?;
    match (kind, value) {
        (Kind::Counter, Value::Count(value)) => {
            one.encode_counter::<NoLabelSet, u64, u64>(&value, None)
        }
        (Kind::Counter, Value::Real(value)) => {
            one.encode_counter::<NoLabelSet, f64, f64>(&value, None)
        }
        (_, Value::Count(value)) => one.encode_gauge(&value),
        (_, Value::Real(value)) => one.encode_gauge(&value),
    }
}

fn times(metric: &mut MetricEncoder<'_>, labels: &Labels, times: &Histogram) -> fmt::Result {
    let seconds = |time: Nanos| time.0 as f64 / 1e9;
    let bound = |bucket| match Histogram::bound(bucket) {
        Nanos::MAX => f64::INFINITY,
        bound => seconds(bound),
    };
    let buckets: Vec<(f64, u64)> =
        (0..BUCKETS).map(|bucket| (bound(bucket), times.counts[bucket])).collect();
    metric.encode_family(labels)?.encode_histogram::<NoLabelSet>(
        seconds(times.sum),
        times.packets(),
        &buckets,
        None,
    )
}
