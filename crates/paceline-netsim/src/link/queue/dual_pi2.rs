// SPDX-License-Identifier: MIT OR Apache-2.0
//! DualPI2 (RFC 9332, appendix A): one queue for L4S packets, ECT(1) and CE, that is kept very short by marks, and one for all
//! others, under a PI controller. The controller's probability is coupled to the marks, so that flows of both kinds get about
//! equal rates, and a weighted scheduler serves the classic queue in any case.

use super::fifo::Fifo;
use super::update_timer::UpdateTimer;
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use crate::records::DropReason;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};

/// RFC 9332, figure 2, `p_Lmax`.
const L4S_MAX: f64 = 1.0;
/// RFC 9332, figure 2, `alpha` in units of Tupdate / RTT_max².
const ALPHA_FACTOR: f64 = 0.1;
/// RFC 9332, figure 2, `beta` in units of 1 / RTT_max.
const BETA_FACTOR: f64 = 0.3;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "dualpi2",
    summary: "DualPI2, RFC 9332: a short queue for L4S packets (ECT(1), CE) beside one for classic packets, coupled",
    limit: QueueEntry::limit(
        "250 ms",
        "the level of both queues above which an arriving packet is dropped (RFC 9332, figure 2)",
    ),
    parameters: &[
        Parameter::new("target", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(10)), "15 ms")
            .about("the delay of the classic queue at which its controller aims (RFC 9332, figure 2)"),
        Parameter::new("rtt_max", ParameterKind::Time(TimeDelta::from_millis(3), TimeDelta::from_secs(10)), "100 ms")
            .about(
                "the longest round-trip time expected, from which the gains follow, and with `target` the interval of \
             updates (RFC 9332, figure 2)",
            ),
        Parameter::new("coupling", ParameterKind::Number(0.1, 10.0), "2")
            .about("the factor from the probability of the controller to that of L4S marks (RFC 9332, figure 2, `k`)"),
        Parameter::new("ramp_from", ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(1)), "800 µs")
            .about("the delay of the L4S queue from which its own marks begin (RFC 9332, figure 2, `minTh`)"),
        Parameter::new("ramp_range", ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(1)), "400 µs").about(
            "the further delay at which every L4S packet is marked; 0 ms is a step (RFC 9332, figure 2, `range`)",
        ),
        Parameter::new("ramp_length", ParameterKind::Count(0, 1000), "1").about(
            "the packets in the L4S queue up to which its own marks are left out (RFC 9332, figure 2, `Th_len`)",
        ),
        Parameter::new("classic_weight", ParameterKind::Number(0.001, 0.999), "0.0625").about(
            "the share of the capacity that the scheduler grants the classic queue in any case (RFC 9332, appendix \
             A.2)",
        ),
    ],
    build: |setup| {
        let values = setup.values;
        let controller = Controller::new(values.time("target"), values.time("rtt_max"), values.number("coupling"));
        Box::new(DualPi2 {
            timer: UpdateTimer::new(controller.period),
            controller,
            ramp: Ramp { from: values.time("ramp_from"), range: values.time("ramp_range") },
            ramp_length: values.count("ramp_length") as usize,
            scheduler: Scheduler { classic_weight: values.number("classic_weight"), credit: 0.0 },
            limit: LimitCheck::of_queue(setup.limit),
            mtu: setup.mtu,
            l4s: Lane::default(),
            classic: Lane::default(),
        })
    },
};

/// The PI controller and the coupling (RFC 9332, figures 2 and 8).
#[derive(Clone, Copy, Debug)]
struct Controller {
    /// Tupdate.
    period: TimeDelta,
    /// In s.
    target: f64,
    /// Gains, Hz.
    alpha: f64,
    beta: f64,
    coupling: f64,
    /// p'.
    base: f64,
    /// The delay at the last update, s.
    old_delay: f64,
}

impl Controller {
    fn new(target: TimeDelta, rtt_max: TimeDelta, coupling: f64) -> Self {
        let period = target.min(rtt_max / 3).max(TimeDelta::from_millis(1));
        let rtt_max = rtt_max.as_secs_f64();
        let (alpha, beta) = (ALPHA_FACTOR * period.as_secs_f64() / (rtt_max * rtt_max), BETA_FACTOR / rtt_max);
        Self { period, target: target.as_secs_f64(), alpha, beta, coupling, base: 0.0, old_delay: 0.0 }
    }

    /// Updates the base probability to a delay in s (figure 8, lines 3 and 6).
    fn update(&mut self, delay: f64) {
        let step = self.alpha * (delay - self.target) + self.beta * (delay - self.old_delay);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    /// Returns p_CL, the probability that is coupled to the L4S queue (figure 8, line 4).
    fn coupled(&self) -> f64 {
        self.base * self.coupling
    }

    /// Returns p_C, the probability of the classic queue (figure 8, line 5).
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// Returns p_Cmax, from which on the queues are overloaded (figure 2, line 11).
    fn classic_max(&self) -> f64 {
        (1.0 / (self.coupling * self.coupling)).min(1.0)
    }
}

/// The marks of the L4S queue itself.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    from: TimeDelta,
    range: TimeDelta,
}

impl Ramp {
    /// Returns the probability at a delay (RFC 9332, figure 5, `laqm`).
    fn probability(&self, delay: TimeDelta) -> f64 {
        if delay >= self.from + self.range {
            1.0
        } else if delay > self.from {
            (delay - self.from).as_nanos() as f64 / self.range.as_nanos() as f64
        } else {
            0.0
        }
    }
}

/// A queue, and the sum from which its marks or drops follow.
#[derive(Debug, Default)]
struct Lane {
    queue: Fifo,
    sum: f64,
}

impl Lane {
    /// Returns true with this likelihood, evenly spread (RFC 9332, figure 4, `recur`).
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.sum += likelihood;
        let recurs = self.sum > 1.0;
        if recurs {
            self.sum -= 1.0;
        }
        recurs
    }
}

/// Weighted round robin: the L4S queue goes first, unless it has used the credit that the classic queue is owed.
#[derive(Clone, Copy, Debug)]
struct Scheduler {
    classic_weight: f64,
    /// Bytes that the classic queue is owed, above zero; it changes only while both queues hold packets.
    credit: f64,
}

impl Scheduler {
    fn prefers_l4s(&self) -> bool {
        self.credit <= 0.0
    }

    /// Accounts for a packet of one queue while the other one holds packets, too.
    fn account(&mut self, is_l4s: bool, size: DataSize) {
        let bytes = size.as_bytes() as f64;
        self.credit += if is_l4s { bytes * self.classic_weight } else { -bytes * (1.0 - self.classic_weight) };
    }
}

struct DualPi2 {
    controller: Controller,
    timer: UpdateTimer,
    ramp: Ramp,
    ramp_length: usize,
    scheduler: Scheduler,
    limit: LimitCheck,
    mtu: DataSize,
    l4s: Lane,
    classic: Lane,
}

impl DualPi2 {
    /// Makes the updates that are due by `now`. The queues have not changed since the last call.
    #[inline]
    fn update_until(&mut self, now: Time) {
        while let Some(at) = self.timer.due(now) {
            let delay = self.classic.queue.head_delay(at).max(self.l4s.queue.head_delay(at)).as_secs_f64();
            let is_at_rest = self.controller.base == 0.0 && delay == 0.0 && self.controller.old_delay == 0.0;
            self.controller.update(delay);
            if is_at_rest && self.is_empty() {
                return self.timer.skip(now);
            }
        }
    }

    /// Returns the queue that is served next: whether it is that of L4S. Neither is empty, or the one returned is not.
    fn schedule(&mut self) -> bool {
        match (self.l4s.queue.front(), self.classic.queue.front()) {
            (Some(l4s), Some(classic)) => {
                let is_l4s = self.scheduler.prefers_l4s();
                let head = if is_l4s { l4s } else { classic };
                self.scheduler.account(is_l4s, head.packet.size);
                is_l4s
            }
            (l4s, _) => l4s.is_some(),
        }
    }

    /// Marks the packet that leaves the L4S queue, or returns false if it is to be dropped (RFC 9332, figure 7, lines 4a to 8j).
    fn pass_l4s(&mut self, now: Time, head: &mut QueuedPacket) -> bool {
        let coupled = self.controller.coupled();
        if coupled < L4S_MAX {
            let own = match self.l4s.queue.len() > self.ramp_length {
                true => self.ramp.probability(now - head.arrived),
                false => 0.0,
            };
            if self.l4s.recurs(own.max(coupled)) {
                head.packet.ecn = Ecn::Ce;
            }
            return true;
        }
        if self.l4s.recurs(self.controller.classic()) {
            return false;
        }
        if self.l4s.recurs(coupled) {
            head.packet.ecn = Ecn::Ce;
        }
        true
    }

    /// Marks the packet that leaves the classic queue, or returns false if it is to be dropped (RFC 9332, figure 7, lines 10 to
    /// 17).
    fn pass_classic(&mut self, head: &mut QueuedPacket) -> bool {
        let probability = self.controller.classic();
        if self.classic.recurs(probability) {
            if !head.packet.ecn.is_capable() || probability >= self.controller.classic_max() {
                return false;
            }
            head.packet.ecn = Ecn::Ce;
        }
        true
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        self.update_until(now);
        if self.is_empty() {
            self.scheduler.credit = 0.0; // in favour of the L4S queue
        }
        let packets = self.l4s.queue.len() + self.classic.queue.len();
        // Packets of every size need the room of a full one, against a bias (RFC 9332, figure 3, line 2).
        let size = if packets == 0 { packet.size } else { packet.size.max(self.mtu) };
        if !self.limit.fits(self.backlog(), packets, size, rate) {
            return drops.push(packet, DropReason::Overflow);
        }
        match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.queue.push(now, packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.queue.push(now, packet),
        }
    }

    fn dequeue(&mut self, now: Time, _: LinkRate<'_>, drops: &mut Drops) -> Option<QueuedPacket> {
        self.update_until(now);
        loop {
            let is_l4s = self.schedule();
            let mut head = if is_l4s { self.l4s.queue.pop()? } else { self.classic.queue.pop()? };
            let passes = if is_l4s { self.pass_l4s(now, &mut head) } else { self.pass_classic(&mut head) };
            if passes {
                return Some(head);
            }
            drops.push(head.packet, DropReason::Aqm);
        }
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.l4s.queue.is_empty() && self.classic.queue.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.l4s.queue.bytes() + self.classic.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::testing::{Counts, arrive, build, leave, offer, packet};

    const TARGET: TimeDelta = TimeDelta::from_millis(15);
    const RTT_MAX: TimeDelta = TimeDelta::from_millis(100);
    const COUPLING: f64 = 2.0;

    #[test]
    fn constants_follow_the_vectors() {
        let controller = Controller::new(TARGET, RTT_MAX, COUPLING);
        assert_eq!(controller.period, TimeDelta::from_millis(15));
        assert!((controller.alpha - 0.15).abs() < 1e-12 && (controller.beta - 3.0).abs() < 1e-12);
        assert_eq!(controller.classic_max(), 0.25);
    }

    #[test]
    fn probabilities_follow_the_vectors() {
        let cases = [
            ((0.0, 0.025, 0.015), (0.0336, 0.0672, 0.001_128_96)),
            ((0.1, 0.020, 0.020), (0.1008, 0.2016, 0.010_160_64)),
            ((0.5, 0.015, 0.030), (0.452, 0.904, 0.204_304)),
        ];
        for ((base, delay, old_delay), expected) in cases {
            // The gains as Linux rounds them.
            let linux = Controller { alpha: 0.16, beta: 3.2, ..Controller::new(TARGET, RTT_MAX, COUPLING) };
            let mut controller = Controller { base, old_delay, ..linux };
            controller.update(delay);
            for (value, expected) in
                [(controller.base, expected.0), (controller.coupled(), expected.1), (controller.classic(), expected.2)]
            {
                assert!((value - expected).abs() < 1e-12, "{value}, {expected}");
            }
        }
    }

    #[test]
    fn ramp_follows_the_vectors() {
        let ramp = Ramp { from: TimeDelta::from_micros(800), range: TimeDelta::from_micros(400) };
        let at = |us| ramp.probability(TimeDelta::from_micros(us));
        assert_eq!([500, 800, 900, 1000, 1200, 2000].map(at), [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
        let step = Ramp { from: TimeDelta::from_millis(1), range: TimeDelta::ZERO };
        assert_eq!([999, 1000].map(|us| step.probability(TimeDelta::from_micros(us))), [0.0, 1.0]);
    }

    /// Counts the last 20 s of 30 s.
    fn run(offered: &[(Ecn, i64)]) -> Vec<Counts> {
        offer(&mut *build(&ENTRY, 250, &[]), offered, (10, 30))
    }

    #[test]
    fn an_unresponsive_l4s_flow_does_not_starve_a_classic_one() {
        // L4S packets alone are twice the capacity; classic packets are offered a fifth of it.
        let [l4s, classic] = &run(&[(Ecn::Ect1, 500), (Ecn::NotEct, 5000)])[..] else { panic!() };
        let share = f64::from(classic.left) / 20_000.0;
        assert!((0.0625..0.2).contains(&share), "at least the weight of the scheduler: {share}");
        assert!(l4s.dropped > 10_000, "overload: L4S packets are dropped");
        assert_eq!(l4s.left + classic.left, 20_000, "the link is never idle");
    }

    #[test]
    fn classic_overload_is_dropped_at_the_target_and_marks_l4s() {
        // 0.3 of L4S and 0.9 of classic: 0.2 must go.
        let [l4s, classic] = &run(&[(Ecn::Ect1, 3350), (Ecn::NotEct, 1100)])[..] else { panic!() };
        let delay = classic.mean_delay();
        assert!((13.0..17.0).contains(&delay), "{delay}");
        let dropped = f64::from(classic.dropped) / f64::from(classic.dropped + classic.left);
        // p_C is that share, and p_CL = 2 √p_C.
        let marked = f64::from(l4s.marked) / f64::from(l4s.left);
        assert!((0.20..0.26).contains(&dropped), "{dropped}");
        assert!((marked / (2.0 * dropped.sqrt()) - 1.0).abs() < 0.1, "{marked}, {dropped}");
        assert!(l4s.mean_delay() < 2.0 && l4s.dropped == 0, "{l4s:?}");
    }

    #[test]
    fn classic_ecn_is_marked_until_overload() {
        let [classic] = &run(&[(Ecn::Ect0, 950)])[..] else { panic!() };
        // Of 21,053 packets 20,000 leave. An unresponsive flow raises p_C to 0.25, from where a quarter is dropped: 1053 of some
        // 4200. Of the other 16,800 a quarter is marked.
        assert!((1_000..1_110).contains(&classic.dropped), "{classic:?}");
        assert!((3_500..5_000).contains(&classic.marked), "{classic:?}");
        let [below] = &run(&[(Ecn::Ect0, 1050)])[..] else { panic!() };
        assert_eq!((below.marked, below.dropped), (0, 0));
    }

    #[test]
    fn classification_follows_the_last_bit() {
        // L4S and CE share a queue; a burst of classic packets does not delay them.
        let mut queue = build(&ENTRY, 250, &[]);
        let now = Time::from_millis(1);
        let kinds = [Ecn::NotEct, Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::NotEct];
        arrive(&mut *queue, now, (0..).zip(kinds).map(|(id, ecn)| packet(id, ecn)));
        let order: Vec<u32> = leave(&mut *queue, now, 9).0.iter().map(|queued| queued.packet.id).collect();
        // After one L4S packet of 1250 bytes the classic queue is owed 78 bytes.
        assert_eq!(order, [2, 0, 3, 1, 4]);
    }
}
