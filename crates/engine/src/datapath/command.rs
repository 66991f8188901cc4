//! What the control thread asks of a direction.

use std::sync::mpsc::SyncSender;

use sched::{ParamError, Params, Spec};

use crate::datapath::live::Seen;
use crate::datapath::report::DirectionReport;
use crate::datapath::shaper::Pacing;

/// A request to a running direction, with where the answer goes.
pub(crate) enum Command {
    /// What has been counted?
    Status(SyncSender<Box<Snapshot>>),
    /// Other parameters and another pacing, from the next packet on. If a parameter cannot
    /// change, nothing has changed.
    Change(Params, Pacing, SyncSender<Result<(), ParamError>>),
    /// Another discipline, made with this seed, takes over the queue.
    Replace(Box<Spec>, u64, Pacing, SyncSender<()>),
}

/// What a direction has counted.
pub(crate) struct Snapshot {
    /// What its report would be if it ended now.
    pub(crate) report: DirectionReport,
    /// What its observer has counted.
    pub(crate) seen: Seen,
    /// Entries in the flow table now.
    pub(crate) flows: u64,
    /// Times that the rate made a packet wait.
    pub(crate) paced: u64,
    /// Whether clients behind NAT on this machine are told apart.
    pub(crate) nat_revealed: bool,
}
