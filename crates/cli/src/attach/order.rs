//! What is to be attached to one device.

use engine::status::{EngineKind, Heading};
use engine::{Following, Overhead};
use sched::{Nanos, Rate, Spec};

use super::goal::{self, Goal};
use super::{AttachOptions, Choice, DEFAULT, Join, Queues, hosts};
use crate::Failure;

/// What is to be attached to one device, checked as far as that needs no device.
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
pub(super) struct Order {
    pub(super) device: String,
    sends: Option<Goal>,
    receives: Option<Goal>,
    /// Rates that follow the link, if they do.
    pub(super) following: Option<Following>,
    spec: Spec,
    /// Whether the discipline is asked for by its name.
    pub(super) is_named: bool,
    pub(super) queues: Option<Queues>,
    pub(super) join: Option<Join>,
    pub(super) overhead: Overhead,
    pub(super) burst_time: Nanos,
    pub(super) replace: bool,
    pub(super) keep_offloads: bool,
    pub(super) foreground: bool,
}

impl Order {
    /// What the options ask for, and of which engine; `None`: of the first that can do it.
    pub(super) fn of(options: AttachOptions) -> Result<(Self, Option<EngineKind>), Failure> {
        let AttachOptions { rate, ingress, queues, join, .. } = options;
        let following = goal::following(rate, ingress, options.probe)?;
        let spec = options.scheduler.as_deref().unwrap_or(DEFAULT).parse()?;
        let order = Self {
            device: options.device.unwrap_or_default(),
            sends: rate,
            receives: ingress,
            following,
            spec,
            is_named: options.scheduler.is_some(),
            queues,
            join,
            overhead: options.overhead,
            burst_time: options.burst_time,
            replace: options.replace,
            keep_offloads: options.keep_offloads,
            foreground: options.foreground,
        };
        let engine = order.check(options.engine)?;
        Ok((order, engine))
    }

    fn check(&self, choice: Choice) -> Result<Option<EngineKind>, Failure> {
        let refused = |text: &str| Err(Failure::Usage(text.into()));
        for goal in [self.sends, self.receives].into_iter().flatten() {
            self.spec.clone().with_limit_for(goal.most()).check()?;
        }
        let for_marks = self.queues.is_some() || self.join.is_some();
        let engine = match choice.kind() {
            None if for_marks => Some(EngineKind::Marks),
            Some(EngineKind::Kernel | EngineKind::Userspace) if for_marks => {
                return refused("--queues and --join are for --engine marks");
            }
            Some(EngineKind::Marks) if self.is_named => {
                return refused(
                    "--scheduler is for the engines kernel and userspace; --queues says what is \
                     behind marks",
                );
            }
            engine => engine,
        };
        if self.following.is_some() && !matches!(engine, None | Some(EngineKind::Userspace)) {
            return refused(goal::UNFOLLOWED);
        }
        if self.sends.is_none() && self.receives.is_none() && self.join.is_none() {
            return refused(&format!("{}: it takes --rate, --ingress, or both", self.device));
        }
        Ok(engine)
    }
}

#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
impl Order {
    /// What the rate of a direction is to be, if it is to have something attached.
    pub(super) const fn goal(&self, heading: Heading) -> Option<Goal> {
        match heading {
            Heading::Egress => self.sends,
            Heading::Ingress => self.receives,
        }
    }

    /// The rate of a direction, to begin with.
    pub(super) fn rate(&self, heading: Heading) -> Option<Rate> {
        self.goal(heading).map(Goal::rate)
    }

    /// The discipline of a direction, with a queue that is long enough for the highest rate.
    pub(super) fn spec(&self, heading: Heading) -> Spec {
        let spec = match heading {
            Heading::Egress => hosts::leaving(&self.spec, &self.device),
            Heading::Ingress => hosts::arriving(&self.spec, &self.device),
        };
        match self.goal(heading) {
            Some(goal) => spec.with_limit_for(goal.most()),
            None => spec,
        }
    }
}
