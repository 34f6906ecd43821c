//! The standing queue: a queue that another flow keeps, whatever this flow sends.
//!
//! ```text
//! suspected    q > q_ref + T A / D for 1.5 s and six times L, q has stayed above 0.4 of its peak since, and D has halved since
//! experiment   the rate is raised by a quarter, and held until the receiver has seen it
//! confirmed    D >= 0.75 of the raised rate: beside a full queue of others, more packets get more of the link
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

/// A suspicion takes this time, and this multiple of the time until a change is seen.
const LASTS: (TimeDelta, i64) = (TimeDelta::from_millis(1500), 6);
/// The queue must be at least this part of the longest since it exceeded the reference.
const KEPT: f64 = 0.4;
/// The delivery rate must have fallen below this part of the largest since.
const FALLEN: f64 = 0.5;
/// A step of the experiment, over the rate.
const STEP: f64 = 1.25;
/// The delivery rate that confirms a step, over the rate.
const FOLLOWS: f64 = 0.75;
/// The decrease after a loss (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// C: the growth beside others, packets per cubic second (RFC 9438, section 5).
const C: f64 = 0.4;
/// Growth as Reno's, packets per round trip: 3 (1 - 0.7) / (1 + 0.7) (RFC 9438, section 4.3).
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The time below the reference that ends a standing queue.
const CLEAR: TimeDelta = TimeDelta::from_secs(1);
/// The time from a refuted suspicion to the next, which doubles.
const WAIT: (TimeDelta, TimeDelta) = (TimeDelta::from_secs(2), TimeDelta::from_secs(32));

/// The experiments that refute a queue that was confirmed before.
const EXPERIMENTS: u8 = 4;
/// Others ignore a loss if the mean queue after a decrease is at least this part of that before.
const IGNORED: f64 = 0.75;
/// The longest time without a decrease beside flows that ignore losses.
const PATIENCE: TimeDelta = TimeDelta::from_secs(10);
/// The largest rate beside flows that ignore losses, over the largest delivery rate.
const SHARE: f64 = 0.5;
/// The time constant with which the largest delivery rate is forgotten.
const FORGOTTEN: TimeDelta = TimeDelta::from_secs(600);

/// What a message shows.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The queue.
    pub queue: TimeDelta,
    /// The queue that is allowed.
    pub reference: TimeDelta,
    /// The queue that flows of this kind keep.
    pub usual: TimeDelta,
    /// The delivery rate.
    pub delivery: Rate,
    /// The time until a change of the rate is seen on an empty path.
    pub seen: TimeDelta,
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
    /// Beside others.
    Beside(Beside),
}

/// What the queue does after a decrease.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    /// The queue at the decrease.
    full: TimeDelta,
    sum: TimeDelta,
    messages: u32,
}

impl Answer {
    fn new(full: TimeDelta) -> Self {
        Self { full, sum: TimeDelta::ZERO, messages: 0 }
    }

    fn add(&mut self, queue: TimeDelta) {
        (self.sum, self.messages) = (self.sum + queue, self.messages + 1);
    }

    fn is_ignored(&self) -> bool {
        self.sum >= self.full.scale(IGNORED) * i64::from(self.messages)
    }
}

/// The state beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Beside {
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
    /// The answer to the last decrease, or to the last loss that was ignored.
    answer: Answer,
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

/// The standing queue.
#[derive(Clone, Debug)]
pub struct StandingQueue {
    state: State,
    /// The last time at which the queue exceeded the reference.
    above: Time,
    /// No suspicion before.
    next: Time,
    wait: TimeDelta,
    /// The largest delivery rate, less what is forgotten, and the time of the last message.
    most: (Time, Rate),
}

impl Default for StandingQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl StandingQueue {
    /// Creates the state of a path without a standing queue.
    pub fn new() -> Self {
        Self { state: State::Clear, above: Time::ZERO, next: Time::ZERO, wait: WAIT.0, most: (Time::ZERO, Rate::ZERO) }
    }

    /// Returns the rate beside others; `None` while no queue stands.
    pub fn update(&mut self, now: Time, seen: &Observation) -> Option<Rate> {
        let &Observation { queue, reference, delivery, .. } = seen;
        if queue > reference {
            self.above = now;
        }
        let part = (now - self.most.0).as_secs_f64() / FORGOTTEN.as_secs_f64();
        self.most = (now, self.most.1.scale((1.0 - part).max(0.0)).max(delivery));
        self.state = match self.state {
            State::Beside(_) if now - self.above > CLEAR => {
                self.wait = WAIT.0;
                State::Clear
            }
            State::Beside(beside) => self.step(now, seen, beside),
            _ if queue <= reference + seen.usual => State::Clear,
            State::Clear => State::Long { since: now, best: delivery, peak: queue },
            State::Long { peak, .. } if queue < peak.scale(KEPT) => State::Clear,
            State::Long { since, best, peak } => {
                let (best, peak) = (best.max(delivery), peak.max(queue));
                let lasts = now - since > LASTS.0.max(seen.seen * LASTS.1);
                if lasts && now >= self.next && delivery < best.scale(FALLEN) {
                    let (rate, top) = (delivery.scale(STEP).min(seen.limit), best.scale(BETA));
                    // Nothing was decreased yet, so the first loss is answered.
                    let answer = Answer::new(TimeDelta::MAX);
                    State::Beside(Beside {
                        rate,
                        raised: now,
                        top,
                        decreased: now,
                        best,
                        tests: true,
                        passed: false,
                        left: 1,
                        answer,
                        ignored: false,
                    })
                } else {
                    State::Long { since, best, peak }
                }
            }
        };
        match self.state {
            State::Beside(Beside { rate, .. }) => Some(rate),
            _ => None,
        }
    }

    /// One step beside others.
    fn step(&mut self, now: Time, seen: &Observation, mut beside: Beside) -> State {
        let Beside { rate, raised, top, decreased, best, tests, passed, left, .. } = beside;
        let shown = seen.srtt + seen.seen;
        if now - decreased > shown {
            beside.answer.add(seen.queue);
            if seen.is_lost {
                beside.ignored = now - decreased < PATIENCE && beside.answer.is_ignored();
                beside.answer = Answer::new(seen.queue);
                if !beside.ignored {
                    // Fast convergence (RFC 9438, section 4.7): a flow that lost before it reached its last top leaves more to others.
                    let top = if rate < top { rate.scale((1.0 + BETA) / 2.0) } else { rate };
                    return State::Beside(Beside {
                        rate: rate.scale(BETA),
                        raised: now,
                        top,
                        decreased: now,
                        tests: false,
                        ..beside
                    });
                }
            }
        }
        if now - raised < shown {
            return State::Beside(beside);
        }
        if seen.delivery < rate.scale(FOLLOWS) {
            if left > 1 {
                let rate = seen.delivery.scale(STEP).min(seen.limit);
                return State::Beside(Beside {
                    rate,
                    raised: now,
                    tests: true,
                    passed: false,
                    left: left - 1,
                    ..beside
                });
            }
            self.next = now + self.wait;
            self.wait = (self.wait * 2).min(WAIT.1);
            return State::Long { since: now, best, peak: seen.queue };
        }
        let limit = if beside.ignored { self.most.1.scale(SHARE).min(seen.limit) } else { seen.limit };
        let next = cubic(top, seen.packet, seen.srtt, now - decreased).min(rate.scale(STEP)).min(limit);
        // Alone, one step is confirmed, too: 1 / 1.25 is above 0.75. A rate that was not raised is no test.
        let (passed, left) = if tests { (true, if passed { EXPERIMENTS } else { left }) } else { (passed, left) };
        State::Beside(Beside { rate: next.max(rate), raised: now, tests: next > rate, passed, left, ..beside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A call of 1 Mbit/s on a path with L and a round-trip time of 200 ms. From 1 s on the queue is 150 ms, and the flow halves
    /// its rate each second while none stands. More than 1.2 Mbit/s loses packets.
    fn run(follows: bool, s: i64) -> (StandingQueue, Vec<(f64, f64)>) {
        let (mut standing, mut rate, mut beside) = (StandingQueue::new(), 1e6_f64, Vec::new());
        for ms in (0..1000 * s).step_by(50) {
            let is_long = ms >= 1000;
            // Alone, the link is what limits: 100 kbit/s.
            let delivery = if follows || ms < 1300 { rate } else { rate.min(1e5) };
            let seen = Observation {
                queue: TimeDelta::from_millis(if is_long { 150 } else { 0 }),
                reference: TimeDelta::from_millis(10),
                usual: TimeDelta::from_millis(20),
                delivery: Rate::from_bps_f64(delivery),
                seen: TimeDelta::from_millis(200),
                srtt: TimeDelta::from_millis(200),
                is_lost: rate > 1.2e6,
                limit: Rate::from_kbps(100_000),
                packet: DataSize::from_bytes(1250),
            };
            match standing.update(Time::from_millis(ms), &seen) {
                Some(own) => {
                    rate = own.as_bps_f64();
                    beside.push((ms as f64 / 1e3, rate));
                }
                None if is_long => rate = (rate * 0.966).max(if follows { 3e4 } else { 1e5 }),
                None => {}
            }
        }
        (standing, beside)
    }

    /// Beside others, the queue stands from 1.5 s after it began, and the rate rises to what it was.
    #[test]
    fn queue_of_others_is_confirmed() {
        let (_, beside) = run(true, 20);
        let (first, last) = (beside[0], beside[beside.len() - 1]);
        assert!((2.5..=3.5).contains(&first.0), "{first:?}");
        assert!((6e5..=1.5e6).contains(&last.1), "{last:?}");
        assert_eq!(beside.len() as i64, (20_000 - (first.0 * 1000.0) as i64) / 50, "without a break");
    }

    /// Alone, an experiment has two steps of L and a round trip each: 1 / 1.25 is still above 0.75. After 2, 4, 8 s it is repeated.
    #[test]
    fn own_queue_is_refuted() {
        let (_, beside) = run(false, 20);
        let starts: Vec<f64> = beside
            .iter()
            .enumerate()
            .filter(|(n, at)| *n == 0 || at.0 - beside[n - 1].0 > 0.1)
            .map(|(_, at)| at.0)
            .collect();
        assert!((2..=4).contains(&starts.len()), "{starts:?}");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 2.0), "{starts:?}");
        assert!(beside.len() <= 17 * starts.len(), "0.8 s each: {}", beside.len());
        assert!(beside.iter().all(|(_, rate)| *rate <= 1.57e5), "{beside:?}");
    }

    /// 120 packets in a round trip of 100 ms: K is 4.48 s; at 0 the rate is 0.7 of the top, at K the top, at 6 s 1.4 packets more.
    #[test]
    fn rate_beside_others_is_that_of_cubic() {
        let packet = DataSize::from_bytes(1250);
        let of = |ms| {
            cubic(Rate::from_kbps(12_000), packet, TimeDelta::from_millis(100), TimeDelta::from_millis(ms)).as_bps_f64()
                / 1e6
        };
        for (ms, wanted) in [(0, 8.4), (4481, 12.0), (6000, 12.14)] {
            assert!((of(ms) - wanted).abs() < 0.005, "{ms}: {}", of(ms));
        }
    }

    /// A flow that has found a standing queue of 150 ms beside others, at about 1 Mbit/s of the 4 Mbit/s that it had before.
    fn beside(
        standing: &mut StandingQueue,
        seconds: (i64, i64),
        mut message: impl FnMut(i64, f64) -> (i64, f64, bool),
    ) -> Vec<f64> {
        let (mut rate, mut rates) = (1e6_f64, Vec::new());
        for ms in (seconds.0 * 1000..seconds.1 * 1000).step_by(50) {
            let (queue, delivery, is_lost) = message(ms, rate);
            let seen = Observation {
                queue: TimeDelta::from_millis(queue),
                reference: TimeDelta::from_millis(10),
                usual: TimeDelta::from_millis(20),
                delivery: Rate::from_bps_f64(delivery),
                seen: TimeDelta::from_millis(200),
                srtt: TimeDelta::from_millis(200),
                is_lost,
                limit: Rate::from_kbps(100_000),
                packet: DataSize::from_bytes(1250),
            };
            if let Some(own) = standing.update(Time::from_millis(ms), &seen) {
                rate = own.as_bps_f64();
                rates.push(rate);
            }
        }
        rates
    }

    /// A queue of 150 ms from 0.5 s on, in which the flow has 1 of its 4 Mbit/s.
    fn confirmed() -> StandingQueue {
        let mut standing = StandingQueue::new();
        let first = |ms, rate: f64| {
            if ms < 500 {
                (0, 4e6, false)
            } else if ms < 700 {
                (150, 4e6, false)
            } else {
                (150, rate, false)
            }
        };
        let rates = beside(&mut standing, (0, 3), first);
        assert!((10..20).contains(&rates.len()), "{rates:?}");
        standing
    }

    /// Half a second in which the flow gets a third of its rate, because the other one pauses and returns, does not end the mode; four such
    /// steps do.
    #[test]
    fn pause_of_others_does_not_refute() {
        let mut standing = confirmed();
        let paused = beside(&mut standing, (3, 7), |ms, rate| (150, if ms < 3500 { rate / 3.0 } else { rate }, false));
        assert_eq!(paused.len(), 80);
        let mut standing = confirmed();
        let alone = beside(&mut standing, (3, 7), |_, rate| (150, rate / 3.0, false));
        assert!((28..=45).contains(&alone.len()), "four steps of 0.4 s: {}", alone.len());
    }

    /// Losses each second: if the queue halves after each decrease, each lowers the rate by 0.7. If it stays, one in 10 s does, and the
    /// rate grows to half of the 4 Mbit/s.
    #[test]
    fn losses_that_others_ignore_do_not_lower_the_rate() {
        let falls = |rates: &[f64]| rates.windows(2).filter(|pair| pair[1] < 0.75 * pair[0]).count();
        let losing =
            |queue: fn(i64) -> i64| beside(&mut confirmed(), (3, 33), |ms, rate| (queue(ms), rate, ms % 1000 == 0));
        let answered = losing(|ms| if ms % 1000 == 0 { 150 } else { 75 });
        let ignored = losing(|_| 150);
        assert!((25..=30).contains(&falls(&answered)), "{}", falls(&answered));
        assert!((2..=4).contains(&falls(&ignored)), "{}", falls(&ignored));
        let most = ignored.iter().copied().fold(0.0, f64::max);
        assert!((1.7e6..=2e6).contains(&most), "{most}");
    }

    /// Ten packets in a round trip of 100 ms: K is 1.96 s. After a second CUBIC alone would have 9.6 packets, Reno 7 + 0.53 · 10.
    #[test]
    fn small_windows_grow_as_renos() {
        let of = |ms| {
            cubic(
                Rate::from_kbps(1000),
                DataSize::from_bytes(1250),
                TimeDelta::from_millis(100),
                TimeDelta::from_millis(ms),
            )
        };
        assert!((of(1000).as_bps_f64() - 1.2294e6).abs() < 1e3, "{}", of(1000));
    }
}
