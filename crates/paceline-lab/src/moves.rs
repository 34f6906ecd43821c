//! A link that is moved by hand while a run in real time goes on: what may be moved, how it is asked for, and what the
//! plan was in the end.
//!
//! A move is a row of the run like any other event, and a plan that every move was applied to says what the link really
//! was: metrics, notes and plots are made with it.

use crate::plan::{HopPlan, Plan, QueuePlan};
use paceline_link::queue::DropTailLimit;
use paceline_link::{Capacity, Change, End, LossModel, Schedule};
use paceline_units::{Fraction, Rate, Time, TimeDelta};
use std::fmt;
use std::mem::discriminant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What becomes of a hop, from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Move {
    /// It serves at this rate.
    Capacity(Rate),
    /// It serves nothing for so long, and then what it would have served.
    Outage(TimeDelta),
    /// Propagation takes so long.
    Delay(TimeDelta),
    /// So many packets are lost on the wire, each by itself.
    Loss(Fraction),
    /// So much may wait, in drain time.
    Queue(TimeDelta),
    /// All is as the scenario has it, at the time that it is.
    Scenario,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(rate) => write!(f, "capacity {rate}"),
            Self::Outage(time) => write!(f, "an outage of {time}"),
            Self::Delay(time) => write!(f, "delay {time}"),
            Self::Loss(fraction) => write!(f, "loss {fraction}"),
            Self::Queue(time) => write!(f, "a queue of {time}"),
            Self::Scenario => f.write_str("as the scenario has it"),
        }
    }
}

/// Where moves are asked for, by one thread, and made, by another. Copies are the same place.
#[derive(Clone, Debug, Default)]
pub struct Moves(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    any: AtomicBool,
    stop: Arc<AtomicBool>,
    /// Bounded: of each hop and kind of move the latest.
    waiting: Mutex<Vec<(usize, Move)>>,
}

impl Moves {
    /// Asks for a move; one of the same hop and kind that still waits is forgotten.
    pub fn ask(&self, hop: usize, to: Move) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(of, other)| *of != hop || discriminant(other) != discriminant(&to));
        waiting.push((hop, to));
        self.0.any.store(true, Ordering::Release);
    }

    /// What was asked for since the last time, first to last.
    pub fn take(&self) -> Vec<(usize, Move)> {
        // Looked at far more often than anything is asked for.
        match self.0.any.swap(false, Ordering::Acquire) {
            false => Vec::new(),
            true => std::mem::take(&mut self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Asks for the end of the run.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// What [`stop`](Self::stop) sets, for who can do no more than set it, such as a signal of the system.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.0.stop.clone()
    }

    /// Whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
}

impl Plan {
    /// The plan with a hop moved at a time; `scenario` is the plan as it was written. Answers how the hop changes.
    pub fn move_hop(&mut self, scenario: &Self, at: Time, hop: usize, to: Move) -> Vec<Change> {
        let end = Time::ZERO + self.duration;
        self.hops[hop].moved(&scenario.hops[hop], (at, end), to)
    }
}

impl HopPlan {
    fn moved(&mut self, scenario: &Self, (at, end): (Time, Time), to: Move) -> Vec<Change> {
        let constant = |rate| Some(Capacity::constant(rate));
        let QueuePlan::DropTail { limit, .. } = &mut self.queue;
        match to {
            Move::Capacity(rate) => {
                self.capacity = spliced(&self.capacity, at, &constant(rate), end);
                vec![Change::Capacity(constant(rate))]
            }
            Move::Outage(time) => {
                let over = (at + time).min(end);
                let outage = spliced(&constant(Rate::ZERO), over, &self.capacity, end);
                self.capacity = spliced(&self.capacity, at, &outage, end);
                vec![Change::Capacity(outage)]
            }
            Move::Delay(time) => {
                self.delay = from(&self.delay, at, &Schedule::constant(time));
                vec![Change::Delay(self.delay.clone())]
            }
            Move::Loss(probability) => {
                self.loss = from(&self.loss, at, &Schedule::constant(LossModel::Bernoulli { probability }));
                vec![Change::Loss(self.loss.clone())]
            }
            Move::Queue(time) => {
                *limit = DropTailLimit::DrainTime(time);
                vec![Change::Limit(*limit)]
            }
            Move::Scenario => {
                self.queue = scenario.queue;
                let QueuePlan::DropTail { limit, .. } = self.queue;
                self.capacity = spliced(&self.capacity, at, &scenario.capacity, end);
                self.delay = from(&self.delay, at, &scenario.delay);
                self.loss = from(&self.loss, at, &scenario.loss);
                vec![
                    Change::Limit(limit),
                    Change::Delay(scenario.delay.clone()),
                    Change::Loss(scenario.loss.clone()),
                    Change::Capacity(scenario.capacity.clone()),
                ]
            }
        }
    }
}

/// Moves as a reader of results wants them: hops by name, and what follows a move of the same kind within a second, as
/// while a slider is dragged, in its place.
pub fn notes(plan: &Plan, moves: &[(Time, usize, Move)]) -> Vec<String> {
    const TOGETHER: TimeDelta = TimeDelta::from_secs(1);
    let mut told: Vec<(Time, usize, Move)> = Vec::new();
    for (at, hop, to) in moves {
        match told.last_mut() {
            Some(last) if last.1 == *hop && discriminant(&last.2) == discriminant(to) && *at - last.0 < TOGETHER => {
                *last = (*at, *hop, *to);
            }
            _ => told.push((*at, *hop, *to)),
        }
    }
    let note = |(at, hop, to): (Time, usize, Move)| {
        format!("{}: from {:.1} s {to}, by hand", plan.hops[hop].id, at.as_secs_f64())
    };
    told.into_iter().map(note).collect()
}

/// Recorded delivery opportunities are told as their mean over this.
const BIN: TimeDelta = TimeDelta::from_millis(100);

/// One capacity up to `at`, another from then to `end`, and its last rate from there. Without a limit there is nothing
/// that could be written down for the time of the other, and the whole has none, unless the later one has.
fn spliced(before: &Option<Capacity>, at: Time, after: &Option<Capacity>, end: Time) -> Option<Capacity> {
    let after = after.as_ref()?;
    let steps = |of: &Capacity, until: Time| of.steps(until.max(Time::from_nanos(1)), BIN);
    let mut points = before.as_ref().map_or(Vec::new(), |before| steps(before, at));
    points.retain(|(from, _)| *from < at);
    if points.is_empty() && at > Time::ZERO {
        points.push((Time::ZERO, after.rate_at(at)));
    }
    points.push((at, after.rate_at(at)));
    points.extend(steps(after, end).into_iter().filter(|(from, _)| *from > at));
    let schedule = Schedule::new(points).expect("times increase");
    Some(Capacity::rates(schedule, End::Hold).expect("it begins at zero"))
}

/// One schedule up to `at`, another from then on.
fn from<T: Clone>(before: &Schedule<T>, at: Time, after: &Schedule<T>) -> Schedule<T> {
    let mut points: Vec<(Time, T)> = before.points().iter().filter(|(from, _)| *from < at).cloned().collect();
    points.push((at, after.at(at).clone()));
    points.extend(after.points().iter().filter(|(from, _)| *from > at).cloned());
    Schedule::new(points).expect("times increase")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Changes, Origin, load};
    use paceline::Registry;

    const STEPS: &str = r#"
id = "test/moves"
title = "Steps"
duration = "60s"
[path]
rtt = "50ms"
[path.forward]
capacity = [["0s", "1Mbps"], ["20s", "2Mbps"], ["40s", "3Mbps"]]
queue = { discipline = "drop-tail", limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
"#;

    fn plan() -> Plan {
        load(&Origin::from_text("moves.toml", STEPS), &Changes::default(), &Registry::standard()).unwrap()
    }

    fn s(t: f64) -> Time {
        Time::from_secs_f64(t)
    }

    /// Rate of the forward hop from which time on, s and kbit/s.
    fn steps(plan: &Plan) -> Vec<(f64, u64)> {
        let steps = plan.hops[0].capacity.as_ref().unwrap().steps(s(60.0), BIN);
        steps.into_iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps() / 1000)).collect()
    }

    #[test]
    fn a_moved_plan_says_what_the_link_was() {
        let (scenario, mut plan) = (plan(), plan());
        plan.move_hop(&scenario, s(10.0), 0, Move::Capacity(Rate::from_kbps(500)));
        assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500)], "and what the scenario would have changed, it does not");
        plan.move_hop(&scenario, s(15.0), 0, Move::Outage(TimeDelta::from_secs(3)));
        assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500), (15.0, 0), (18.0, 500)]);
        plan.move_hop(&scenario, s(25.0), 0, Move::Scenario);
        assert_eq!(steps(&plan), [(0.0, 1000), (10.0, 500), (15.0, 0), (18.0, 500), (25.0, 2000), (40.0, 3000)]);
        // An outage over a change of the scenario's: the rate after it is that of its time.
        plan.move_hop(&scenario, s(39.0), 0, Move::Outage(TimeDelta::from_secs(2)));
        assert_eq!(steps(&plan)[4..], [(25.0, 2000), (39.0, 0), (41.0, 3000)]);
        assert_eq!(steps(&scenario), [(0.0, 1000), (20.0, 2000), (40.0, 3000)]);
    }

    #[test]
    fn a_dragged_slider_is_one_note() {
        let rate = |kbps| Move::Capacity(Rate::from_kbps(kbps));
        let mut moves: Vec<(Time, usize, Move)> =
            (0..50).map(|n| (s(10.0 + 0.1 * n as f64), 0, rate(500 + n))).collect();
        moves.push((s(20.0), 0, rate(900)));
        moves.push((s(20.1), 0, Move::Outage(TimeDelta::from_secs(3))));
        moves.push((s(20.2), 0, rate(800)));
        let told = [
            "forward: from 14.9 s capacity 549 kbps, by hand",
            "forward: from 20.0 s capacity 900 kbps, by hand",
            "forward: from 20.1 s an outage of 3 s, by hand",
            "forward: from 20.2 s capacity 800 kbps, by hand",
        ];
        assert_eq!(notes(&plan(), &moves), told);
    }

    #[test]
    fn delay_loss_and_queue_move_from_their_time_on() {
        let (scenario, mut plan) = (plan(), plan());
        let ms = TimeDelta::from_millis;
        let loss = Fraction::new(0.05).unwrap();
        plan.move_hop(&scenario, s(10.0), 0, Move::Delay(ms(200)));
        plan.move_hop(&scenario, s(11.0), 0, Move::Loss(loss));
        plan.move_hop(&scenario, s(12.0), 0, Move::Queue(ms(40)));
        let hop = &plan.hops[0];
        assert_eq!((*hop.delay.at(s(9.9)), *hop.delay.at(s(10.0))), (ms(25), ms(200)));
        let lost = LossModel::Bernoulli { probability: loss };
        assert_eq!((*hop.loss.at(s(10.9)), *hop.loss.at(s(11.0))), (LossModel::NONE, lost));
        let limit = |plan: &Plan| {
            let QueuePlan::DropTail { limit, .. } = plan.hops[0].queue;
            limit
        };
        assert_eq!(limit(&plan), DropTailLimit::DrainTime(ms(40)));
        assert_eq!(plan.flows[0].base_rtt_at(&plan, s(30.0)), ms(225));
        let changes = plan.move_hop(&scenario, s(20.0), 0, Move::Scenario);
        assert_eq!(changes.len(), 4);
        assert_eq!((limit(&plan), plan.flows[0].base_rtt_at(&plan, s(30.0))), (limit(&scenario), ms(50)));
        assert_eq!(*plan.hops[0].loss.at(s(20.0)), LossModel::NONE);
        assert_eq!(*plan.hops[0].loss.at(s(19.9)), lost, "what was, was");
    }

    #[test]
    fn of_each_kind_the_latest_is_made_and_in_order() {
        let moves = Moves::default();
        assert_eq!(moves.take(), []);
        let rate = |kbps| Move::Capacity(Rate::from_kbps(kbps));
        (1..500).for_each(|kbps| moves.clone().ask(0, rate(kbps)));
        moves.ask(1, rate(7));
        moves.ask(0, Move::Scenario);
        moves.ask(0, rate(900));
        assert_eq!(moves.take(), [(1, rate(7)), (0, Move::Scenario), (0, rate(900))]);
        assert_eq!(moves.take(), []);
        assert!(!moves.is_stopped());
        moves.clone().stop();
        assert!(moves.is_stopped());
    }
}
