//! What is to be attached to one device.

use engine::LinkSettings;
use engine::status::{EngineKind, Heading, Status};
use sched::{Rate, Spec};

use super::goal::Goal;
use super::link::LinkOptions;
use super::probe::Named;
#[cfg(feature = "kernel")]
use super::probe::Probe;
use super::{AttachOptions, Choice, DEFAULT, Join, Queues, hosts};
use crate::Failure;

/// What is to be attached to one device, checked as far as that needs no device.
#[cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "it takes an engine to read it"))]
pub(super) struct Order {
    pub(super) device: String,
    sends: Option<Goal>,
    receives: Option<Goal>,
    /// Whom rates that follow the link are to go by, if that is said.
    pub(super) probe: Option<Named>,
    pub(super) dry_run: bool,
    spec: Spec,
    /// Whether the discipline is asked for by its name.
    pub(super) is_named: bool,
    pub(super) queues: Option<Queues>,
    pub(super) join: Option<Join>,
    pub(super) options: LinkOptions,
    pub(super) replace: bool,
    pub(super) keep_offloads: bool,
    pub(super) per_queue: bool,
    pub(super) foreground: bool,
}

impl Order {
    /// What the options ask for, and of which engine; `None`: of the first that can do it.
    pub(super) fn of(options: AttachOptions) -> Result<(Self, Option<EngineKind>), Failure> {
        let AttachOptions { rate, ingress, queues, join, .. } = options;
        let spec = options.scheduler.as_deref().unwrap_or(DEFAULT).parse()?;
        let order = Self {
            device: options.device.unwrap_or_default(),
            sends: rate,
            receives: ingress,
            probe: options.probe,
            dry_run: options.dry_run,
            spec,
            is_named: options.scheduler.is_some(),
            queues,
            join,
            options: options.link,
            replace: options.replace,
            keep_offloads: options.keep_offloads,
            per_queue: options.per_queue,
            foreground: options.foreground,
        };
        let engine = order.check(options.engine)?;
        Ok((order, engine))
    }

    /// Whether a rate follows the link.
    pub(super) fn follows(&self) -> bool {
        [self.sends, self.receives].into_iter().flatten().any(|goal| goal.bounds().is_some())
    }

    /// Whom rates that follow the link go by, if they do.
    #[cfg(feature = "kernel")]
    pub(super) fn chosen_probe(&self) -> Result<Option<Probe>, Failure> {
        let choose = || Probe::choose(self.probe.clone(), &self.device);
        self.follows().then(choose).transpose()
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
            Some(EngineKind::Marks | EngineKind::Userspace) if self.per_queue => {
                return refused("--per-queue is for --engine kernel");
            }
            // No other engine can stand in for it.
            None if self.per_queue => Some(EngineKind::Kernel),
            engine => engine,
        };
        if self.per_queue && self.sends.is_none() {
            return refused("--per-queue is for what a device sends; it takes --rate");
        }
        if self.follows() && self.join.is_some() {
            return refused(
                "--join is for queues that are somebody's, whose rate stays: a rate that follows \
                 the link (auto:...) takes --queues in its place",
            );
        }
        if self.sends.is_none() && self.receives.is_none() && self.join.is_none() {
            return refused(&format!("{}: it takes --rate, --ingress, or both", self.device));
        }
        let idle = [(self.probe.is_some(), "--probe"), (self.dry_run, "--dry-run")];
        if let Some((_, option)) = idle.iter().find(|(given, _)| *given && !self.follows()) {
            return refused(&format!(
                "{option} is for a rate that follows the link, auto:FLOOR..BASE..CEILING"
            ));
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

    /// The rate of a direction, as it is to be written, if it is to follow the link.
    pub(super) fn follow(&self, heading: Heading) -> Option<String> {
        self.goal(heading).filter(|goal| goal.bounds().is_some()).map(|goal| goal.to_string())
    }

    /// The rate of a direction, to begin with.
    pub(super) fn rate(&self, heading: Heading) -> Option<Rate> {
        self.goal(heading).map(Goal::rate)
    }

    /// The link of a direction, to begin with, if it is to have something attached.
    pub(super) fn link(&self, heading: Heading) -> Option<LinkSettings> {
        self.rate(heading).map(|rate| self.options.at(rate))
    }

    /// Whether a direction is to have something attached.
    pub(super) fn attaches(&self, heading: Heading) -> bool {
        self.goal(heading).is_some() || heading == Heading::Egress && self.join.is_some()
    }

    /// The discipline of a direction.
    pub(super) fn discipline(&self, heading: Heading) -> Spec {
        match heading {
            Heading::Egress => hosts::leaving(&self.spec, &self.device),
            Heading::Ingress => hosts::arriving(&self.spec, &self.device),
        }
    }

    /// The same with a queue that is long enough for the highest rate.
    pub(super) fn spec(&self, heading: Heading) -> Spec {
        let spec = self.discipline(heading);
        match self.goal(heading) {
            Some(goal) => spec.with_limit_for(goal.most()),
            None => spec,
        }
    }

    /// The discipline of a direction, if what runs there is another one. A limit that is not asked
    /// for is that which it got when it was attached: it stays when the rate changes.
    pub(super) fn other_than(&self, runs: &Status) -> Result<Option<Spec>, Failure> {
        let spec = self.discipline(runs.direction);
        let Ok(now) = runs.scheduler.parse::<Spec>() else { return Ok(Some(spec)) };
        let has_queues = runs.qdisc.as_ref().is_some_and(|qdisc| qdisc.queues.is_some());
        if runs.direction == Heading::Egress && has_queues != self.per_queue {
            return Ok(Some(spec));
        }
        let limit = |spec: &Spec| {
            let params = spec.params();
            let is_given = params.has("limit") && params.is_given("limit");
            is_given.then(|| params.amount("limit").to_string())
        };
        let spec = match limit(&now) {
            Some(is) if spec.info() == now.info() && limit(&spec).is_none() => {
                spec.with("limit", &is)?
            }
            _ => spec,
        };
        Ok((spec.to_string() != now.to_string()).then_some(spec))
    }
}
