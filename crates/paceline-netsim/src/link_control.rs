// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link changes by the user during a run in real time.
//!
//! A change is an event of the run. A plan to which every change was applied describes the link as it was; metrics,
//! notes and plots use that plan.

use crate::describe::CAPACITY_BIN;
use crate::link::queue::QueueLimit;
use crate::link::{Capacity, CapacityEnd, LinkChange, LossModel, Schedule};
use crate::plan::{HopPlan, Plan};
use crate::records::LinkUpdate;
use paceline_units::{Rate, Time, TimeDelta};
use std::mem::discriminant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes requested link changes from one thread to the thread that runs the link. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct LinkControl(Arc<Requests>);

#[derive(Debug, Default)]
struct Requests {
    is_pending: AtomicBool,
    stop: Arc<AtomicBool>,
    /// The latest request of each hop and kind, so the size is bounded.
    pending: Mutex<Vec<(usize, LinkUpdate)>>,
}

impl LinkControl {
    /// Requests a change. It replaces a pending request of the same hop and kind.
    pub fn request(&self, hop: usize, to: LinkUpdate) {
        let mut pending = self.0.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|(of, other)| *of != hop || discriminant(other) != discriminant(&to));
        pending.push((hop, to));
        self.0.is_pending.store(true, Ordering::Release);
    }

    /// Returns and removes the pending requests, in order.
    pub fn take_requests(&self) -> Vec<(usize, LinkUpdate)> {
        // The link polls far more often than the user requests a change.
        match self.0.is_pending.swap(false, Ordering::Acquire) {
            false => Vec::new(),
            true => std::mem::take(&mut self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Requests the end of the run.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the flag that [`stop`](Self::stop) sets, for signal handlers.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.0.stop.clone()
    }

    /// Returns whether the end of the run was requested.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
}

impl Plan {
    /// Applies an update to a hop at time `at`; `scenario` is the original plan. Returns the changes of the link.
    pub fn update_hop(&mut self, scenario: &Self, at: Time, hop: usize, to: LinkUpdate) -> Vec<LinkChange> {
        let end = Time::ZERO + self.duration;
        self.hops[hop].update(&scenario.hops[hop], (at, end), to)
    }
}

impl HopPlan {
    fn update(&mut self, scenario: &Self, (at, end): (Time, Time), to: LinkUpdate) -> Vec<LinkChange> {
        let constant = |rate| Some(Capacity::constant(rate));
        match to {
            LinkUpdate::Capacity(rate) => {
                self.capacity = splice_capacity(&self.capacity, at, &constant(rate), end);
                vec![LinkChange::Capacity(constant(rate))]
            }
            LinkUpdate::Outage(time) => {
                let over = (at + time).min(end);
                let outage = splice_capacity(&constant(Rate::ZERO), over, &self.capacity, end);
                self.capacity = splice_capacity(&self.capacity, at, &outage, end);
                vec![LinkChange::Capacity(outage)]
            }
            LinkUpdate::Delay(time) => {
                self.delay = splice(&self.delay, at, &Schedule::constant(time));
                vec![LinkChange::Delay(self.delay.clone())]
            }
            LinkUpdate::Loss(probability) => {
                self.loss = splice(&self.loss, at, &Schedule::constant(LossModel::Bernoulli(probability)));
                vec![LinkChange::Loss(self.loss.clone())]
            }
            LinkUpdate::Queue(time) => {
                self.queue.limit = QueueLimit::DrainTime(time);
                vec![LinkChange::Limit(self.queue.limit)]
            }
            LinkUpdate::Scenario => {
                self.queue = scenario.queue.clone();
                self.capacity = splice_capacity(&self.capacity, at, &scenario.capacity, end);
                self.delay = splice(&self.delay, at, &scenario.delay);
                self.loss = splice(&self.loss, at, &scenario.loss);
                vec![
                    LinkChange::Limit(self.queue.limit),
                    LinkChange::Delay(scenario.delay.clone()),
                    LinkChange::Loss(scenario.loss.clone()),
                    LinkChange::Capacity(scenario.capacity.clone()),
                ]
            }
        }
    }
}

/// Returns a note on each update, with the name of the hop. An update replaces a previous one of the same hop and kind
/// within a second, for example while the user drags a slider.
pub fn describe_updates(plan: &Plan, updates: &[(Time, usize, LinkUpdate)]) -> Vec<String> {
    const MERGE_WINDOW: TimeDelta = TimeDelta::from_secs(1);
    let mut merged: Vec<(Time, usize, LinkUpdate)> = Vec::new();
    for (at, hop, to) in updates {
        match merged.last_mut() {
            Some(last)
                if last.1 == *hop && discriminant(&last.2) == discriminant(to) && *at - last.0 < MERGE_WINDOW =>
            {
                *last = (*at, *hop, *to);
            }
            _ => merged.push((*at, *hop, *to)),
        }
    }
    let note = |(at, hop, to): (Time, usize, LinkUpdate)| {
        format!("{}: from {:.1} s {to}, by hand", plan.hops[hop].id, at.as_secs_f64())
    };
    merged.into_iter().map(note).collect()
}

/// Returns `before` up to `at`, then `after` to `end`, and its last rate from there on. If `after` is unlimited, the
/// result is unlimited; an unlimited `before` has no rates, so the first rate of `after` replaces it.
fn splice_capacity(before: &Option<Capacity>, at: Time, after: &Option<Capacity>, end: Time) -> Option<Capacity> {
    let after = after.as_ref()?;
    let steps = |of: &Capacity, until: Time| of.steps(until.max(Time::from_nanos(1)), CAPACITY_BIN);
    let mut points = before.as_ref().map_or(Vec::new(), |before| steps(before, at));
    points.retain(|(from, _)| *from < at);
    if points.is_empty() && at > Time::ZERO {
        points.push((Time::ZERO, after.rate_at(at)));
    }
    points.push((at, after.rate_at(at)));
    points.extend(steps(after, end).into_iter().filter(|(from, _)| *from > at));
    let schedule = Schedule::new(points).expect("times increase");
    Some(Capacity::rates(schedule, CapacityEnd::Hold).expect("it begins at zero"))
}

/// Returns the schedule `before` up to `at`, then `after`.
fn splice<T: Clone>(before: &Schedule<T>, at: Time, after: &Schedule<T>) -> Schedule<T> {
    let mut points: Vec<(Time, T)> = before.points().iter().filter(|(from, _)| *from < at).cloned().collect();
    points.push((at, after.at(at).clone()));
    points.extend(after.points().iter().filter(|(from, _)| *from > at).cloned());
    Schedule::new(points).expect("times increase")
}
