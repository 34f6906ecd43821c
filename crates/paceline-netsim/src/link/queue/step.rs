//! One queue that marks every ECN-capable packet that has waited longer than a threshold, as a switch does for DCTCP (RFC
//! 8257). It shows L4S congestion controls without the isolation of DualPI2.

use super::fifo::Fifo;
use super::{Descriptor, Discipline, Drops, LimitCheck, LinkRate, QueueEntry, QueueLimit, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind, Value};
use crate::records::DropReason;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};

/// The middle of the ramp of RFC 9332, appendix A.1, from 800 to 1200 µs.
const THRESHOLD: TimeDelta = TimeDelta::from_millis(1);

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "step",
    summary: "first in, first out; marks each ECN-capable packet that has waited longer than a threshold, as for DCTCP",
    limit: QueueEntry::limit(
        QueueLimit::DrainTime(TimeDelta::from_millis(300)),
        "300 ms",
        "the level above which an arriving packet is dropped (RFC 8867, section 4.2)",
    ),
    parameters: &[Parameter::new(
        "threshold",
        ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(10)),
        (Value::Time(THRESHOLD), "1 ms"),
        "the delay above which a packet is marked as it leaves (the middle of the ramp of RFC 9332, appendix A.1)",
    )],
    build: |setup| {
        let (limit, threshold) = (LimitCheck::of_queue(setup.limit), setup.values.time("threshold"));
        Box::new(Step { limit, threshold, queue: Fifo::default() })
    },
};

struct Step {
    limit: LimitCheck,
    threshold: TimeDelta,
    queue: Fifo,
}

impl Discipline for Step {
    fn enqueue(&mut self, now: Time, rate: LinkRate<'_>, packet: Descriptor, drops: &mut Drops) {
        match self.limit.fits(self.queue.bytes(), self.queue.len(), packet.size, rate) {
            true => self.queue.push(now, packet),
            false => drops.push(packet, DropReason::Overflow),
        }
    }

    fn dequeue(&mut self, now: Time, _: LinkRate<'_>, _: &mut Drops) -> Option<QueuedPacket> {
        let mut head = self.queue.pop()?;
        if now - head.arrived > self.threshold && head.packet.ecn.is_capable() {
            head.packet.ecn = Ecn::Ce;
        }
        Some(head)
    }

    fn acts_at_departure(&self) -> bool {
        false
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit.set(limit);
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn backlog(&self) -> DataSize {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{Dscp, FlowId};

    #[test]
    fn marks_from_the_threshold_on_and_only_capable_packets() {
        let limit = LimitCheck::of_queue(QueueLimit::Packets(9));
        let mut queue = Step { limit, threshold: THRESHOLD, queue: Fifo::default() };
        let mut drops = Drops::default();
        for (id, ecn) in [Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct, Ecn::Ce].into_iter().enumerate() {
            let size = DataSize::from_bytes(1000);
            let packet = Descriptor { id: id as u32, flow: FlowId(0), size, ecn, dscp: Dscp::DEFAULT };
            queue.enqueue(Time::ZERO, LinkRate::at(None, Time::ZERO), packet, &mut drops);
        }
        let mut leave = |us: i64| {
            let now = Time::from_nanos(1000 * us);
            queue.dequeue(now, LinkRate::at(None, now), &mut drops).unwrap().packet.ecn
        };
        let marks = [leave(1000), leave(1001), leave(1001), leave(1001), leave(1001)];
        assert_eq!(marks, [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
    }
}
