//! The standing queue: a queue that another flow keeps, whatever this flow sends.
//!
//! ```text
//! suspected    q > q_ref + T A / D for 1.5 s and six times L, q has stayed above 0.4 of its peak since, and D has halved since
//! experiment   the rate is raised by a quarter, and held until the receiver has seen it
//! confirmed    D >= 0.75 of the raised rate: in a full queue of others, more packets get more of the link
//! refuted      D <  0.75 of it: the link is the flow's own, and so is the queue. That takes two steps
//! ```
//!
//! Each later step that raises the rate by a quarter is the same experiment, so that a flow that is left alone may drain its queue again;
//! small steps show nothing. The other flow may also pause, as
//! BBR and CUBIC do: once two raised steps in a row were confirmed, the experiment is made up to four times. A refuted suspicion is not
//! tested again for 2 s, then 4, 8, 16, 32 s.
//!
//! A loss lowers the rate as CUBIC's. BBR does not answer losses, and would take what is left to it:
//!
//! ```text
//! ignored      since a decrease was seen, or a loss ignored, the mean queue is 0.75 of that at that time, or more
//! ```
//!
//! Then a loss does not lower the rate, for 10 s at most, and the rate does not rise above half of what the link has given.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The shortest time that a suspicion takes.
const SUSPICION_MIN: TimeDelta = TimeDelta::from_millis(1500);
/// The time that a suspicion takes, over the response time.
const SUSPICION_RESPONSES: i64 = 6;
/// A queue is suspected while it is at least this part of its peak since it exceeded the reference.
const PEAK_SHARE: f64 = 0.4;
/// A queue is suspected if the delivery rate has fallen below this part of the largest since.
const DELIVERY_SHARE: f64 = 0.5;
/// A step of the experiment, over the rate.
const STEP: f64 = 1.25;
/// The delivery rate that confirms a step, over the rate.
const CONFIRMATION: f64 = 0.75;
/// The decrease after a loss (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// C: the growth of a competing flow, packets per cubic second (RFC 9438, section 5).
const C: f64 = 0.4;
/// Growth as Reno's, packets per round trip: 3 (1 - 0.7) / (1 + 0.7) (RFC 9438, section 4.3).
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The time below the reference that ends a standing queue.
const CLEAR: TimeDelta = TimeDelta::from_secs(1);
/// The time from a refuted suspicion to the next, which doubles up to the second value.
const RETRY: (TimeDelta, TimeDelta) = (TimeDelta::from_secs(2), TimeDelta::from_secs(32));

/// The experiments that refute a queue that was confirmed before.
const EXPERIMENTS: u8 = 4;
/// Others ignore a loss if the mean queue after a decrease is at least this part of that before.
const IGNORED_SHARE: f64 = 0.75;
/// The longest time for which losses are ignored.
const IGNORED_MAX: TimeDelta = TimeDelta::from_secs(10);
/// The largest rate while losses are ignored, over the largest delivery rate.
const RATE_MAX: f64 = 0.5;
/// The time constant with which the largest delivery rate is forgotten.
const MEMORY: TimeDelta = TimeDelta::from_secs(600);

/// What a message shows.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    pub queue: TimeDelta,
    /// The queue that is allowed.
    pub reference: TimeDelta,
    /// The queue that flows of this kind keep.
    pub usual: TimeDelta,
    /// The delivery rate.
    pub delivery: Rate,
    /// The time until a change of the rate is seen on an empty path.
    pub response: TimeDelta,
    /// The round-trip time, with the queue.
    pub srtt: TimeDelta,
    /// Whether packets were lost.
    pub is_lost: bool,
    /// The largest rate that can be sent.
    pub limit: Rate,
    /// The size of a packet.
    pub packet: DataSize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// No queue, or a short one.
    Clear,
    /// The queue exceeds the reference since then; the largest delivery rate and the longest queue since.
    Long { since: Time, best: Rate, peak: TimeDelta },
    /// Others keep the queue.
    Competing(Competition),
}

/// What the queue does after a decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
struct QueueResponse {
    /// The queue at the decrease.
    before: TimeDelta,
    sum: TimeDelta,
    messages: u32,
}

impl QueueResponse {
    fn new(before: TimeDelta) -> Self {
        Self { before, sum: TimeDelta::ZERO, messages: 0 }
    }

    fn add(&mut self, queue: TimeDelta) {
        (self.sum, self.messages) = (self.sum + queue, self.messages + 1);
    }

    /// Returns whether others ignored the loss.
    fn is_ignored(&self) -> bool {
        self.sum >= self.before.scale(IGNORED_SHARE) * i64::from(self.messages)
    }
}

/// The state of a flow that competes with others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Competition {
    rate: Rate,
    /// When the rate was last raised.
    raised: Time,
    /// The rate before the last decrease, and its time.
    top: Rate,
    decreased: Time,
    /// The largest delivery rate before the queue stood.
    best: Rate,
    /// Whether the last step raised the rate, and whether the last one that did was confirmed; the experiments that are left.
    tests: bool,
    passed: bool,
    left: u8,
    /// The response to the last decrease, or to the last loss that was ignored.
    response: QueueResponse,
    /// Whether others ignored the last loss.
    ignored: bool,
}

/// The rate of CUBIC (RFC 9438, equations 1, 2 and 4) at the time `since` after a decrease at the rate `top`: in small windows, that of
/// Reno.
///
/// ```text
/// W_max = top srtt / packet
/// K     = cbrt(W_max (1 - 0.7) / C)
/// W     = max(C (since - K)^3 + W_max, 0.7 W_max + 0.53 since / srtt)
/// rate  = W packet / srtt                                             (13)
/// ```
pub fn cubic(top: Rate, packet: DataSize, srtt: TimeDelta, since: TimeDelta) -> Rate {
    let per_packet = packet.as_bits() as f64 / srtt.as_secs_f64().max(1e-3);
    let most = top.as_bps_f64() / per_packet;
    let k = libm::cbrt(most * (1.0 - BETA) / C);
    let t = since.as_secs_f64() - k;
    let reno = BETA * most + RENO * since.as_secs_f64() / srtt.as_secs_f64().max(1e-3);
    Rate::from_bps_f64((C * t * t * t + most).max(reno) * per_packet)
}

/// The detection of a standing queue, and the rate while one stands.
#[derive(Clone, Debug)]
pub struct StandingQueue {
    state: State,
    /// The last time at which the queue exceeded the reference.
    above: Time,
    /// No suspicion before.
    next: Time,
    retry: TimeDelta,
    /// The largest delivery rate, less what is forgotten, and the time of the last message.
    most: (Time, Rate),
}

impl StandingQueue {
    /// Creates the state of a path without a standing queue.
    pub fn new() -> Self {
        let (above, next, most) = (Time::ZERO, Time::ZERO, (Time::ZERO, Rate::ZERO));
        Self { state: State::Clear, above, next, retry: RETRY.0, most }
    }

    /// Returns the rate of a competing flow; `None` while no queue stands.
    pub fn update(&mut self, now: Time, seen: &Observation) -> Option<Rate> {
        let &Observation { queue, reference, delivery, .. } = seen;
        if queue > reference {
            self.above = now;
        }
        let forgotten = (now - self.most.0).as_secs_f64() / MEMORY.as_secs_f64();
        self.most = (now, self.most.1.scale((1.0 - forgotten).max(0.0)).max(delivery));
        self.state = match self.state {
            State::Competing(_) if now - self.above > CLEAR => {
                self.retry = RETRY.0;
                State::Clear
            }
            State::Competing(competition) => self.step(now, seen, competition),
            _ if queue <= reference + seen.usual => State::Clear,
            State::Clear => State::Long { since: now, best: delivery, peak: queue },
            State::Long { peak, .. } if queue < peak.scale(PEAK_SHARE) => State::Clear,
            State::Long { since, best, peak } => {
                let (best, peak) = (best.max(delivery), peak.max(queue));
                let is_suspected = now - since > SUSPICION_MIN.max(seen.response * SUSPICION_RESPONSES);
                if is_suspected && now >= self.next && delivery < best.scale(DELIVERY_SHARE) {
                    State::Competing(Competition {
                        rate: delivery.scale(STEP).min(seen.limit),
                        raised: now,
                        top: best.scale(BETA),
                        decreased: now,
                        best,
                        tests: true,
                        passed: false,
                        left: 1,
                        // Nothing was decreased yet, so the first loss lowers the rate.
                        response: QueueResponse::new(TimeDelta::MAX),
                        ignored: false,
                    })
                } else {
                    State::Long { since, best, peak }
                }
            }
        };
        match self.state {
            State::Competing(Competition { rate, .. }) => Some(rate),
            _ => None,
        }
    }

    /// One step of a competing flow.
    fn step(&mut self, now: Time, seen: &Observation, mut competition: Competition) -> State {
        let Competition { rate, raised, top, decreased, best, tests, passed, left, .. } = competition;
        let response = seen.srtt + seen.response;
        if now - decreased > response {
            competition.response.add(seen.queue);
            if seen.is_lost {
                competition.ignored = now - decreased < IGNORED_MAX && competition.response.is_ignored();
                competition.response = QueueResponse::new(seen.queue);
                if !competition.ignored {
                    // Fast convergence (RFC 9438, section 4.7): a flow that lost before it reached its last top leaves more to others.
                    let top = if rate < top { rate.scale((1.0 + BETA) / 2.0) } else { rate };
                    let (rate, raised, decreased) = (rate.scale(BETA), now, now);
                    return State::Competing(Competition { rate, raised, top, decreased, tests: false, ..competition });
                }
            }
        }
        if now - raised < response {
            return State::Competing(competition);
        }
        if seen.delivery < rate.scale(CONFIRMATION) {
            if left > 1 {
                let (rate, left) = (seen.delivery.scale(STEP).min(seen.limit), left - 1);
                return State::Competing(Competition {
                    rate,
                    raised: now,
                    tests: true,
                    passed: false,
                    left,
                    ..competition
                });
            }
            self.next = now + self.retry;
            self.retry = (self.retry * 2).min(RETRY.1);
            return State::Long { since: now, best, peak: seen.queue };
        }
        let limit = if competition.ignored { self.most.1.scale(RATE_MAX).min(seen.limit) } else { seen.limit };
        let next = cubic(top, seen.packet, seen.srtt, now - decreased).min(rate.scale(STEP)).min(limit);
        // Alone, one step is confirmed, too: 1 / 1.25 is above 0.75. A rate that was not raised is no test.
        let (passed, left) = if tests { (true, if passed { EXPERIMENTS } else { left }) } else { (passed, left) };
        State::Competing(Competition {
            rate: next.max(rate),
            raised: now,
            tests: next > rate,
            passed,
            left,
            ..competition
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Handles a message of a path with L and a round-trip time of 200 ms. Returns the rate, bit/s.
    fn update(standing: &mut StandingQueue, ms: i64, queue_ms: i64, delivery: f64, is_lost: bool) -> Option<f64> {
        let seen = Observation {
            queue: TimeDelta::from_millis(queue_ms),
            reference: TimeDelta::from_millis(10),
            usual: TimeDelta::from_millis(20),
            delivery: Rate::from_bps_f64(delivery),
            response: TimeDelta::from_millis(200),
            srtt: TimeDelta::from_millis(200),
            is_lost,
            limit: Rate::from_kbps(100_000),
            packet: DataSize::from_bytes(1250),
        };
        standing.update(Time::from_millis(ms), &seen).map(Rate::as_bps_f64)
    }

    /// A call of 1 Mbit/s on a path with L and a round-trip time of 200 ms. From 1 s on the queue is 150 ms, and the flow halves
    /// its rate each second while none stands. More than 1.2 Mbit/s loses packets.
    fn run(follows: bool, s: i64) -> (StandingQueue, Vec<(f64, f64)>) {
        let (mut standing, mut rate, mut competing) = (StandingQueue::new(), 1e6_f64, Vec::new());
        for ms in (0..1000 * s).step_by(50) {
            let is_long = ms >= 1000;
            // Alone, the link is what limits: 100 kbit/s.
            let delivery = if follows || ms < 1300 { rate } else { rate.min(1e5) };
            match update(&mut standing, ms, if is_long { 150 } else { 0 }, delivery, rate > 1.2e6) {
                Some(own) => {
                    rate = own;
                    competing.push((ms as f64 / 1e3, rate));
                }
                None if is_long => rate = (rate * 0.966).max(if follows { 3e4 } else { 1e5 }),
                None => {}
            }
        }
        (standing, competing)
    }

    /// If others keep it, the queue stands from 1.5 s after it began, and the rate rises to what it was.
    #[test]
    fn queue_of_others_is_confirmed() {
        let (_, competing) = run(true, 20);
        let (first, last) = (competing[0], competing[competing.len() - 1]);
        assert!((2.5..=3.5).contains(&first.0), "{first:?}");
        assert!((6e5..=1.5e6).contains(&last.1), "{last:?}");
        assert_eq!(competing.len() as i64, (20_000 - (first.0 * 1000.0) as i64) / 50, "without a break");
    }

    /// Alone, an experiment has two steps of L and a round trip each: 1 / 1.25 is still above 0.75. After 2, 4, 8 s it is repeated.
    #[test]
    fn own_queue_is_refuted() {
        let (_, competing) = run(false, 20);
        let starts: Vec<f64> = competing
            .iter()
            .enumerate()
            .filter(|(n, at)| *n == 0 || at.0 - competing[n - 1].0 > 0.1)
            .map(|(_, at)| at.0)
            .collect();
        assert!((2..=4).contains(&starts.len()), "{starts:?}");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 2.0), "{starts:?}");
        assert!(competing.len() <= 17 * starts.len(), "0.8 s each: {}", competing.len());
        assert!(competing.iter().all(|(_, rate)| *rate <= 1.57e5), "{competing:?}");
    }

    /// 120 packets in a round trip of 100 ms: K is 4.48 s; at 0 the rate is 0.7 of the top, at K the top, at 6 s 1.4 packets more. Ten
    /// packets: K is 1.96 s; after a second CUBIC alone would have 9.6 packets, Reno 7 + 0.53 · 10.
    #[test]
    fn rate_of_a_competing_flow_is_that_of_cubic_or_reno() {
        for (kbps, ms, expected) in
            [(12_000, 0, 8.4), (12_000, 4481, 12.0), (12_000, 6000, 12.14), (1000, 1000, 1.2294)]
        {
            let (packet, srtt) = (DataSize::from_bytes(1250), TimeDelta::from_millis(100));
            let rate = cubic(Rate::from_kbps(kbps), packet, srtt, TimeDelta::from_millis(ms)).as_bps_f64() / 1e6;
            assert!((rate - expected).abs() < if kbps == 1000 { 0.001 } else { 0.005 }, "{ms}: {rate}");
        }
    }

    /// A flow that has found a standing queue of 150 ms of others, at about 1 Mbit/s of the 4 Mbit/s that it had before.
    fn compete(
        standing: &mut StandingQueue,
        seconds: (i64, i64),
        mut message: impl FnMut(i64, f64) -> (i64, f64, bool),
    ) -> Vec<f64> {
        let (mut rate, mut rates) = (1e6_f64, Vec::new());
        for ms in (seconds.0 * 1000..seconds.1 * 1000).step_by(50) {
            let (queue, delivery, is_lost) = message(ms, rate);
            if let Some(own) = update(standing, ms, queue, delivery, is_lost) {
                rate = own;
                rates.push(rate);
            }
        }
        rates
    }

    /// A queue of 150 ms from 0.5 s on, in which the flow has 1 of its 4 Mbit/s.
    fn confirmed() -> StandingQueue {
        let mut standing = StandingQueue::new();
        let first = |ms, rate: f64| (if ms < 500 { 0 } else { 150 }, if ms < 700 { 4e6 } else { rate }, false);
        let rates = compete(&mut standing, (0, 3), first);
        assert!((10..20).contains(&rates.len()), "{rates:?}");
        standing
    }

    /// Half a second in which the flow gets a third of its rate, because the other one pauses and returns, does not end the mode; four such
    /// steps do.
    #[test]
    fn pause_of_others_does_not_refute() {
        let mut standing = confirmed();
        let paused = compete(&mut standing, (3, 7), |ms, rate| (150, if ms < 3500 { rate / 3.0 } else { rate }, false));
        assert_eq!(paused.len(), 80);
        let mut standing = confirmed();
        let alone = compete(&mut standing, (3, 7), |_, rate| (150, rate / 3.0, false));
        assert!((28..=45).contains(&alone.len()), "four steps of 0.4 s: {}", alone.len());
    }

    /// Losses each second: if the queue halves after each decrease, each lowers the rate by 0.7. If it stays, one in 10 s does, and the
    /// rate grows to half of the 4 Mbit/s.
    #[test]
    fn losses_that_others_ignore_do_not_lower_the_rate() {
        let falls = |rates: &[f64]| rates.windows(2).filter(|pair| pair[1] < 0.75 * pair[0]).count();
        let losing =
            |queue: fn(i64) -> i64| compete(&mut confirmed(), (3, 33), |ms, rate| (queue(ms), rate, ms % 1000 == 0));
        let answered = losing(|ms| if ms % 1000 == 0 { 150 } else { 75 });
        let ignored = losing(|_| 150);
        assert!((25..=30).contains(&falls(&answered)), "{}", falls(&answered));
        assert!((2..=4).contains(&falls(&ignored)), "{}", falls(&ignored));
        let most = ignored.iter().copied().fold(0.0, f64::max);
        assert!((1.7e6..=2e6).contains(&most), "{most}");
    }
}
