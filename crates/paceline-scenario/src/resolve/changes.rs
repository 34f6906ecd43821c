// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts that the ends of a media flow learn during a run: limits of the target, routes, and whether there is a network.

use super::{Checked, MIN_RATE, Resolver};
use crate::file::MediaKeys;
use crate::forms::Timed;
use crate::text_span::HasTextSpan;
use paceline::{Bounds, Setup};
use paceline_netsim::link::Schedule;
use paceline_netsim::plan::FlowChange;
use paceline_units::{Rate, Time, TimeDelta};

/// The time between two REMBs of a middlebox: that of the regular REMBs of receivers (mmsys16, section 3.3).
const REMB_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// The limits of a flow's target over time.
pub(super) struct Limits {
    pub min: Schedule<Rate>,
    /// `None` without a limit besides that of the sources.
    pub max: Option<Schedule<Rate>>,
}

impl Limits {
    /// Returns the limits in force; `sources` is the highest rate that the sources can use.
    fn at(&self, now: Time, sources: Rate) -> Bounds {
        let max = self.max.as_ref().map_or(sources, |max| sources.min(*max.at(now)));
        let min = *self.min.at(now);
        Bounds::new(min, max.max(min))
    }

    /// Returns the times at which a limit applies that the ends do not know yet. They know the first minimum.
    fn changes(&self) -> Vec<Time> {
        let min = self.min.points().iter().skip(1).map(|(at, _)| *at);
        let max = self.max.iter().flat_map(|max| max.points()).map(|(at, _)| *at);
        let mut times: Vec<Time> = min.chain(max).collect();
        times.sort_unstable();
        times.dedup();
        times
    }
}

impl Resolver<'_> {
    pub(super) fn limits(&mut self, flow: &MediaKeys) -> Checked<Limits> {
        let min = match &flow.min_rate {
            Some(spanned) => self.schedule(spanned, spanned.get(), |_, rate| Ok(*rate))?,
            None => Schedule::constant(MIN_RATE),
        };
        let Some(spanned) = &flow.max_rate else { return Ok(Limits { min, max: None }) };
        let max = self.schedule(spanned, spanned.get(), |_, rate| Ok(*rate))?;
        let times = min.points().iter().chain(max.points()).map(|(at, _)| *at);
        if let Some(at) = times.into_iter().find(|at| max.at(*at) < min.at(*at)) {
            let message = format!("`max_rate` is {} at {at}, but `min_rate` is {}", max.at(at), min.at(at));
            return self.fail(spanned, message, "raise `max_rate`, or lower `min_rate`, which is 30 kbps if absent");
        }
        Ok(Limits { min, max: Some(max) })
    }

    /// Returns the facts in order of time; at equal times limits come before a route, and that before the network's return.
    pub(super) fn changes(
        &mut self,
        flow: &MediaKeys,
        limits: &Limits,
        setup: &Setup,
        stop: Time,
    ) -> Checked<Vec<(Time, FlowChange)>> {
        let mut changes: Vec<(Time, FlowChange)> = Vec::new();
        changes.extend(limits.changes().iter().map(|at| (*at, FlowChange::Bounds(limits.at(*at, setup.max)))));
        if let Some(spanned) = &flow.route_change_at {
            self.check_increasing(spanned, spanned.get().iter().copied(), true, "[\"20s\", \"40s\"]")?;
            changes.extend(spanned.get().iter().map(|at| {
                let Bounds { min, max, .. } = limits.at(*at, setup.max);
                (*at, FlowChange::Route(Setup::new(setup.start.max(min), min, max).with_packet_size(setup.packet_size)))
            }));
        }
        if let Some(spanned) = &flow.available {
            let schedule = self.schedule(spanned, &Timed::Schedule(spanned.get().clone()), |_, is| Ok(*is))?;
            changes.extend(schedule.points().iter().map(|(at, is)| (*at, FlowChange::Availability(*is))));
        }
        if let Some(spanned) = &flow.remb {
            let help = "[[\"20s\", \"500 kbps\"], [\"40s\", \"100 Mbps\"]]";
            self.check_increasing(spanned, spanned.get().iter().map(|(at, _)| *at), false, help)?;
            let mut points = spanned.get().iter().peekable();
            while let Some((from, rate)) = points.next() {
                let to = points.peek().map_or(stop, |(next, _)| *next);
                let times =
                    core::iter::successors(Some(*from), |at| Some(*at + REMB_INTERVAL)).take_while(|at| *at < to);
                changes.extend(times.map(|at| (at, FlowChange::Remb(*rate))));
            }
        }
        changes.sort_by_key(|(at, _)| *at);
        Ok(changes)
    }

    /// Checks that the times of a list increase, from above 0 s if they are `after_start`.
    pub(super) fn check_increasing(
        &self,
        spanned: &impl HasTextSpan,
        times: impl Iterator<Item = Time>,
        after_start: bool,
        help: &str,
    ) -> Checked<()> {
        let mut last = after_start.then_some(Time::ZERO);
        for at in times {
            if let Some(before) = last.filter(|before| at <= *before) {
                let from = if after_start { " from above 0s" } else { "" };
                let message = format!("times must increase{from}, and {at} comes after {before}");
                return self.fail(spanned, message, format!("write it like {help}"));
            }
            last = Some(at);
        }
        Ok(())
    }
}
