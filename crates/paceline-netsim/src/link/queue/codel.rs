// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel (RFC 8289): drops at departure once packets have waited longer than `target` for at least `interval`, then at
//! intervals that shrink with the square root of the number of drops.
//!
//! [`CoDel`] is the control law without a queue, so that a discipline with several queues can use one for each.
//! [`CoDelQueue`] is the discipline: one FIFO queue with a limit.

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::{Drops, LinkRate, QueueEntry, QueuedPacket};
use crate::link::MTU;
use crate::parameter::{Parameter, ParameterKind};
use crate::records::DropReason;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};

/// A new drop state within this many intervals after the last one continues its drop rate: RFC 8289, section 5.5.
const RESUME_INTERVALS: i64 = 16;

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "codel",
    summary: "CoDel, RFC 8289: drops or marks at departure while packets wait longer than the target for an interval",
    limit: QueueEntry::limit("1000 packets", "the level above which an arriving packet is dropped (Linux `tc codel`)"),
    parameters: &[
        Parameter::new("target", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(10)), "5 ms")
            .about("the accepted standing delay of the queue (RFC 8289, section 4.2)"),
        Parameter::new("interval", ParameterKind::Time(TimeDelta::from_nanos(1), TimeDelta::from_secs(100)), "100 ms")
            .about(
                "the time for which packets must wait longer than the target before one is dropped; about the longest \
             round-trip time (RFC 8289, section 4.2)",
            ),
        Parameter::new("ecn", ParameterKind::Flag, "false").about(
            "whether an ECN-capable packet is marked in place of being dropped (RFC 8290, section 5.2.6); off, because \
             RFC 8289 specifies drops",
        ),
    ],
    build: |setup| {
        let (target, interval) = (setup.values.time("target"), setup.values.time("interval"));
        let law = CoDel::new(target, interval, setup.values.flag("ecn")).with_max_packet(setup.mtu);
        Box::new(CoDelQueue::with(setup.limit, law))
    },
};

/// The control law of one queue.
#[derive(Clone, Debug)]
pub struct CoDel {
    target: TimeDelta,
    interval: TimeDelta,
    marks: bool,
    /// Up to this backlog nothing is dropped: RFC 8289, section 5.1, `maxpacket`, which "SHOULD use interface MTU".
    max_packet: DataSize,
    /// The time from which packets may be dropped; `None` while the delay is below the target.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    /// Drops since the drop state began, and at the beginning of the last one.
    count: u32,
    last_count: u32,
}

impl CoDel {
    /// Creates the control law for an empty queue. With `marks`, ECN-capable packets are marked in place of being
    /// dropped.
    pub fn new(target: TimeDelta, interval: TimeDelta, marks: bool) -> Self {
        let (first_above, is_dropping, drop_next, count, last_count) = (None, false, Time::ZERO, 0, 0);
        Self { target, interval, marks, max_packet: MTU, first_above, is_dropping, drop_next, count, last_count }
    }

    /// Sets the size of the largest packet; up to this backlog nothing is dropped. The default is the [`MTU`] of Ethernet.
    pub fn with_max_packet(self, max_packet: DataSize) -> Self {
        Self { max_packet, ..self }
    }

    /// Returns the packet to serve at `now` (RFC 8289, section 5.5, `dequeue`). `pop` removes the head of the queue and
    /// returns it with the bytes that are left. Dropped packets go to `drops`.
    pub fn dequeue(
        &mut self,
        now: Time,
        mut pop: impl FnMut() -> Option<(QueuedPacket, DataSize)>,
        drops: &mut Drops,
    ) -> Option<QueuedPacket> {
        let mut next = self.head(now, &mut pop);
        if self.is_dropping {
            self.is_dropping = next.is_some_and(|(_, may_drop)| may_drop);
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let is_marked = self.drop_or_mark(&mut next, drops);
                if !is_marked {
                    next = self.head(now, &mut pop);
                    self.is_dropping = next.is_some_and(|(_, may_drop)| may_drop);
                }
                if self.is_dropping {
                    self.drop_next = control_law(self.drop_next, self.interval, self.count);
                }
                if is_marked {
                    break;
                }
            }
        } else if next.is_some_and(|(_, may_drop)| may_drop) {
            if !self.drop_or_mark(&mut next, drops) {
                next = self.head(now, &mut pop);
            }
            self.is_dropping = true;
            let recent = now - self.drop_next < self.interval * RESUME_INTERVALS;
            let drops_before = self.count.saturating_sub(self.last_count);
            self.count = if drops_before > 1 && recent { drops_before } else { 1 };
            self.drop_next = control_law(now, self.interval, self.count);
            self.last_count = self.count;
        }
        next.map(|(queued, _)| queued)
    }

    /// Returns the head of the queue, and whether it may be dropped (RFC 8289, section 5.4, `dodequeue`).
    fn head(
        &mut self,
        now: Time,
        pop: &mut impl FnMut() -> Option<(QueuedPacket, DataSize)>,
    ) -> Option<(QueuedPacket, bool)> {
        let Some((queued, left)) = pop() else {
            self.first_above = None;
            return None;
        };
        if now - queued.arrived < self.target || left <= self.max_packet {
            self.first_above = None;
            return Some((queued, false));
        }
        match self.first_above {
            Some(from) => Some((queued, now >= from)),
            None => {
                self.first_above = Some(now + self.interval);
                Some((queued, false))
            }
        }
    }

    /// Marks the packet, if it is ECN-capable and the law marks, or drops it. Returns whether it is marked.
    fn drop_or_mark(&self, next: &mut Option<(QueuedPacket, bool)>, drops: &mut Drops) -> bool {
        if self.marks
            && let Some((queued, _)) = next
            && queued.packet.ecn.is_capable()
        {
            queued.packet.ecn = Ecn::Ce;
            return true;
        }
        if let Some((queued, _)) = next.take() {
            drops.push(queued.packet, DropReason::Aqm);
        }
        false
    }
}

/// Returns the time of the drop after `count` drops (RFC 8289, section 5.3, `control_law`): t + interval / √count.
fn control_law(t: Time, interval: TimeDelta, count: u32) -> Time {
    t + interval.scale(1.0 / f64::from(count).sqrt())
}

/// The discipline: one FIFO queue under CoDel. A full queue drops the arriving packet.
pub type CoDelQueue = Single<CoDel>;

impl Aqm for CoDel {
    const DROPS_AT_DEPARTURE: bool = true;

    fn next(&mut self, now: Time, _: LinkRate<'_>, queue: &mut Fifo, drops: &mut Drops) -> Option<QueuedPacket> {
        self.dequeue(now, || queue.pop().map(|head| (head, queue.bytes())), drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::QueueLimit;
    use crate::link::queue::testing::packet;
    use crate::link::{Capacity, HopPlan, Link, Output, Schedule};
    use paceline_units::{RandomStreams, Rate};

    const TARGET: TimeDelta = TimeDelta::from_millis(5);
    const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

    fn ms(t: i64) -> Time {
        Time::from_millis(t)
    }

    #[test]
    fn control_law_spaces_drops_by_the_square_root_of_their_number() {
        let mut t = Time::ZERO;
        let times: Vec<i64> = (1..=5)
            .map(|count| {
                t = control_law(t, INTERVAL, count);
                t.as_nanos()
            })
            .collect();
        // 100 ms · (1 + 1/√2 + 1/√3 + 1/√4 + 1/√5), to the nanosecond.
        for (time, expected) in times.iter().zip([100_000_000, 170_710_678, 228_445_705, 278_445_705, 323_167_065]) {
            assert!((time - expected).abs() <= 2, "{time}");
        }
    }

    /// Times, ms, of drops (or marks) when a packet that has waited 20 ms leaves every 10 ms.
    fn decisions(marks: bool, ecn: Ecn) -> Vec<i64> {
        let (mut law, mut drops) = (CoDel::new(TARGET, INTERVAL, marks), Drops::default());
        let mut times = Vec::new();
        for now in (0..=600).step_by(10).map(ms) {
            let queued = QueuedPacket { packet: packet(0, ecn), arrived: now - TimeDelta::from_millis(20) };
            let next = law.dequeue(now, || Some((queued, DataSize::from_bytes(100_000))), &mut drops).unwrap();
            let is_marked = next.packet.ecn == Ecn::Ce && ecn != Ecn::Ce;
            let at = now.as_nanos() / 1_000_000;
            times.extend(drops.drain().map(|_| at).chain(is_marked.then_some(at)));
        }
        times
    }

    #[test]
    fn drops_come_faster_while_the_delay_stays() {
        let expected = [100, 200, 280, 330, 380, 430, 470, 510, 540, 580];
        assert_eq!(decisions(false, Ecn::NotEct), expected);
        assert_eq!(decisions(false, Ecn::Ect0), expected, "ECN is off");
        assert_eq!(decisions(true, Ecn::NotEct), expected, "packets without ECN are dropped");
        assert_eq!(decisions(true, Ecn::Ect0), expected, "marks come at the same times");
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let dropped = |max_packet, left| {
            let mut law = CoDel::new(TARGET, INTERVAL, false).with_max_packet(DataSize::from_bytes(max_packet));
            let (left, mut drops) = (DataSize::from_bytes(left), Drops::default());
            for now in (0..1000).map(|n| ms(10 * n)) {
                let queued = QueuedPacket { packet: packet(0, Ecn::NotEct), arrived: now - INTERVAL };
                assert!(law.dequeue(now, || Some((queued, left)), &mut drops).is_some());
            }
            !drops.is_empty()
        };
        let sizes = [(1500, 1500), (1500, 1501), (628, 628), (628, 629)];
        assert_eq!(sizes.map(|(max_packet, left)| dropped(max_packet, left)), [false, true, false, true]);
    }

    #[test]
    fn a_link_drops_at_the_times_of_the_control_law() {
        // 1 Mbit/s, 10 ms a packet; 30 packets at once. The one that leaves at 10 ms has waited longer than 5 ms, so that
        // drops begin at 110 ms: packet 11. Services start each 10 ms; the next drops are due at 110 + 100 = 210 ms, and
        // 70.7 ms after that, 280.7, at the service of 290 ms. 57.7 ms after 280.7 is 338.4; all have left by then.
        let limit = QueueLimit::Packets(100);
        let hop = HopPlan {
            capacity: Some(Capacity::constant(Rate::from_kbps(1000))),
            delay: Schedule::constant(TimeDelta::from_millis(40)),
            ..HopPlan::new("test", limit)
        };
        let queue = Box::new(CoDelQueue::with(limit, CoDel::new(TARGET, INTERVAL, false)));
        let mut link = Link::with_queue(hop, queue, &RandomStreams::new(1));
        (0..30).for_each(|id| link.handle_packet(ms(0), packet(id, Ecn::NotEct)));
        let mut drops = Vec::new();
        let mut delivered = Vec::new();
        while let Some(now) = link.poll_timeout() {
            while let Some(output) = link.poll_output(now) {
                match output {
                    Output::Dropped { packet, reason, due, .. } => drops.push((packet.id, reason, due, now)),
                    Output::Delivered { packet, left, .. } => delivered.push((packet.id, left)),
                }
            }
        }
        let at = |id, t| (id, DropReason::Aqm, ms(t), ms(t));
        assert_eq!(drops, [at(11, 110), at(22, 210)], "each drop is reported when it happens");
        assert_eq!(delivered.len(), 28);
        assert_eq!(delivered[11], (12, ms(120)), "the next packet takes its place");
        assert_eq!(delivered[27], (29, ms(280)));
    }
}
