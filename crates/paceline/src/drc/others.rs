// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of others: what the flow cannot drain, found by experiment.
//!
//! A flow that is alone drains its queue in a few times T, and gets what the link delivers all the while. If the queue is still there after
//! that, and the flow gets half of what it got, it may have yielded to others. It then sends more than it gets. Alone, it still gets what the
//! link delivers; in a queue of others it gets more. It then allows that queue, and returns to half of what it got. If that does not give it
//! more, the queue was its own. The queue of others is forgotten while the queue is within the reference, so that a flow that is
//! left alone drains it.
//!
//! ```text
//! suspected   q > q_ref + T A / D for 4 T, q - f >= peak / 2, and D < best / 2                          (12)
//! experiment  r = 1.25 D for L and a round trip
//! found       D has grown by half of that:  f = f + peak,  r = best / 2
//! refuted     D has not grown to 1.25 times its value, L and a round trip after the queue exceeds q_ref again:  f = 0
//! f = f (1 - dt / M)          while q <= q_ref
//! ```
//!
//! peak is the longest queue beyond f since it exceeded q_ref, and best the largest D, which is forgotten with the time constant M.

use super::DrcConfig;
use super::law::{self, HALF};
use paceline_units::{Time, TimeDelta};

/// What a message shows of a queue that exceeds the reference.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The time since the message before.
    pub dt: TimeDelta,
    /// q.
    pub queue: TimeDelta,
    /// q_ref.
    pub reference: TimeDelta,
    /// D, bit/s.
    pub delivery: f64,
    /// T.
    pub drain_time: TimeDelta,
    /// L and a round trip.
    pub response: TimeDelta,
}

/// What a message changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// The rate of the experiment, bit/s.
    Test(f64),
    /// The queue is that of others. The rate to which the flow returns, bit/s.
    Found(f64),
}

/// A queue that is longer than the reference.
#[derive(Clone, Copy, Debug)]
struct Long {
    since: Time,
    peak: TimeDelta,
    best: f64,
    /// The experiment: the delivery rate before it, and its end.
    test: Option<(f64, Time)>,
}

/// What must follow after a queue was found to be that of others.
#[derive(Clone, Copy, Debug)]
struct Proof {
    /// The delivery rate then, and the largest since.
    before: f64,
    best: f64,
    /// When it must have grown.
    end: Option<Time>,
}

/// The queue of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueOfOthers {
    /// f.
    pub queue: TimeDelta,
    long: Option<Long>,
    proof: Option<Proof>,
}

impl QueueOfOthers {
    /// Handles a message with a queue within the reference, `dt` after the one before, and a delivery rate, bit/s.
    pub fn handle_short(&mut self, dt: TimeDelta, delivery: f64, config: &DrcConfig) {
        self.long = None;
        self.queue = self.queue.scale((1.0 - dt.as_secs_f64() / config.memory.as_secs_f64()).max(0.0));
        if let Some(proof) = &mut self.proof {
            proof.best = proof.best.max(delivery);
        }
    }

    /// Handles a message with a longer queue.
    pub fn handle_long(&mut self, now: Time, seen: &Observation, config: &DrcConfig) -> Step {
        self.prove(now, seen, config);
        let beyond = seen.queue - self.queue;
        let new = Long { since: now, peak: beyond, best: seen.delivery, test: None };
        let long = self.long.get_or_insert(new);
        let step = config.pacing_factor;
        if let Some((before, end)) = long.test {
            if now < end {
                return Step::Test(before * step);
            }
            if seen.delivery < before * (1.0 + HALF * (step - 1.0)) {
                *long = new;
                return Step::Nothing;
            }
            let (queue, best) = (self.queue + long.peak, long.best);
            let proof = Proof { before: seen.delivery, best: seen.delivery, end: None };
            *self = Self { queue, long: None, proof: Some(proof) };
            return Step::Found(best * HALF);
        }
        let kept = (1.0 - seen.dt.as_secs_f64() / config.memory.as_secs_f64()).max(0.0);
        (long.peak, long.best) = (long.peak.max(beyond), (long.best * kept).max(seen.delivery));
        // What flows of this kind keep.
        let usual = seen.drain_time.scale(law::additive(config, seen.delivery) / seen.delivery.max(1.0));
        if seen.queue <= seen.reference + usual || beyond < long.peak.scale(HALF) {
            self.long = None;
        } else if now - long.since > seen.drain_time.scale(config.drains) && seen.delivery < long.best * HALF {
            long.test = Some((seen.delivery, now + seen.response));
            return Step::Test(seen.delivery * step);
        }
        Step::Nothing
    }

    /// More is sent since the queue was found to be that of others. If not more was delivered, the link is the flow's own, and so is the queue.
    fn prove(&mut self, now: Time, seen: &Observation, config: &DrcConfig) {
        let Some(proof) = &mut self.proof else { return };
        proof.best = proof.best.max(seen.delivery);
        if now >= *proof.end.get_or_insert(now + seen.response) {
            let is_own = proof.best < proof.before * config.pacing_factor;
            self.proof = None;
            if is_own {
                *self = Self::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: DrcConfig = DrcConfig::DEFAULT;
    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn seen(queue: i64, delivery: f64) -> Observation {
        let (drain_time, response, reference) = (MS(400), MS(250), MS(10));
        Observation { dt: MS(50), queue: MS(queue), reference, delivery, drain_time, response }
    }

    /// A queue of 150 ms from 1 s on. The flow yields, by a fifth each 200 ms, and follows what it is given. `delivered` is what the link gives
    /// it of a rate. Returns when it was tested first, when found, and the state at the end.
    fn run(until: i64, delivered: impl Fn(f64) -> f64) -> (Option<i64>, Option<i64>, QueueOfOthers) {
        let (mut others, mut rate, mut tested, mut found) = (QueueOfOthers::default(), 1e6, None, None);
        let mut before = [1e6; 5];
        for ms in (0..until).step_by(50) {
            if ms < 1000 {
                others.handle_short(MS(50), 1e6, &C);
                continue;
            }
            // What is sent now is seen 200 ms later.
            before.rotate_left(1);
            before[4] = rate;
            let of = Observation { reference: MS(10) + others.queue, ..seen(150, delivered(before[0])) };
            match others.handle_long(Time::from_millis(ms), &of, &C) {
                Step::Test(test) => (rate, tested) = (test, tested.or(Some(ms))),
                Step::Found(back) => (rate, found) = (back, found.or(Some(ms))),
                Step::Nothing => rate = (rate * 0.95_f64).max(2e5),
            }
        }
        (tested, found, others)
    }

    /// In a queue of others the flow gets what it sends: after four times 400 ms it gets less than a half, tests, and gets more. The queue is theirs, and
    /// the flow returns to half of what it had.
    #[test]
    fn queue_of_others_is_found() {
        let (tested, found, others) = run(3500, |rate| rate);
        let (tested, found) = (tested.expect("a test"), found.expect("a queue of others"));
        assert!((2600..=2700).contains(&tested) && (250..=350).contains(&(found - tested)), "{tested} {found}");
        assert!((100.0..=150.0).contains(&others.queue.as_millis_f64()), "{:?}", others.queue);
    }

    /// Alone on a link that became slow, the flow gets no more when it sends more.
    #[test]
    fn own_queue_is_not_that_of_others() {
        let (tested, found, others) = run(6000, |rate| if rate > 9.9e5 { 1e6 } else { rate.min(2e5) });
        assert!(tested.is_some() && found.is_none() && others.queue == TimeDelta::ZERO, "{tested:?} {found:?}");
    }

    /// A queue that flows of this kind keep is no reason for a test: 26 ms at 1 Mbit/s, beyond the reference.
    #[test]
    fn usual_queue_is_not_suspected() {
        let mut others = QueueOfOthers::default();
        let mut step = Step::Nothing;
        for n in 0..200 {
            let delivery = if n < 20 { 3e6 } else { 1e6 };
            step = others.handle_long(Time::from_millis(50 * n), &seen(35, delivery), &C);
            assert_eq!(step, Step::Nothing, "{n}");
        }
        for n in 200..300 {
            let of = seen(100, if n < 220 { 3e6 } else { 1e6 });
            if step == Step::Nothing {
                step = others.handle_long(Time::from_millis(50 * n), &of, &C);
            }
        }
        assert!(matches!(step, Step::Test(_)), "{step:?}");
    }

    /// The queue of others is forgotten in 30 s, and at once if the flow gets no more than before.
    #[test]
    fn queue_of_others_is_forgotten() {
        let mut others = QueueOfOthers { queue: MS(100), ..QueueOfOthers::default() };
        (0..600).for_each(|_| others.handle_short(MS(50), 1e6, &C));
        assert!((34.0..=38.0).contains(&others.queue.as_millis_f64()), "{:?}", others.queue);
        for (best, left) in [(1e6, 0.0), (1.3e6, 100.0)] {
            let proof = Some(Proof { before: 1e6, best: 1e6, end: None });
            let mut others = QueueOfOthers { queue: MS(100), proof, ..QueueOfOthers::default() };
            others.handle_short(MS(50), best, &C);
            (0..7).for_each(|n| _ = others.handle_long(Time::from_millis(50 * n), &seen(150, 1e6), &C));
            assert!((others.queue.as_millis_f64() - left).abs() <= 1.0, "{:?} {left}", others.queue);
        }
    }
}
