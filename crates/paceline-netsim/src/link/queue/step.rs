// SPDX-License-Identifier: MIT OR Apache-2.0
//! One queue that marks every ECN-capable packet that has waited longer than a threshold, as a switch does for DCTCP (RFC
//! 8257). It shows L4S congestion controls without the isolation of DualPI2.

use super::fifo::Fifo;
use super::single::{Aqm, Single};
use super::{Drops, LinkRate, QueueEntry, QueuedPacket};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{Ecn, Time, TimeDelta};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "step",
    summary: "first in, first out; marks each ECN-capable packet that has waited longer than a threshold, as for DCTCP",
    limit: QueueEntry::limit("300 ms", "the level above which an arriving packet is dropped (RFC 8867, section 4.2)"),
    parameters: &[Parameter::new("threshold", ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(10)), "1 ms")
        .about(
            "the delay above which a packet is marked as it leaves (the middle of the ramp of RFC 9332, appendix A.1)",
        )],
    build: |setup| Box::new(Single::with(setup.limit, Step { threshold: setup.values.time("threshold") })),
};

struct Step {
    threshold: TimeDelta,
}

impl Aqm for Step {
    fn next(&mut self, now: Time, _: LinkRate<'_>, queue: &mut Fifo, _: &mut Drops) -> Option<QueuedPacket> {
        let mut head = queue.pop()?;
        if now - head.arrived > self.threshold && head.packet.ecn.is_capable() {
            head.packet.ecn = Ecn::Ce;
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::testing::{arrive, build, leave, packet};

    #[test]
    fn marks_from_the_threshold_on_and_only_capable_packets() {
        let mut queue = build(&ENTRY, 9, &[]);
        let ecn = [Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct, Ecn::Ce];
        arrive(&mut *queue, Time::ZERO, ecn.map(|ecn| packet(0, ecn)));
        let marks =
            [1000, 1001, 1001, 1001, 1001].map(|us| leave(&mut *queue, Time::from_nanos(1000 * us), 1).0[0].packet.ecn);
        assert_eq!(marks, [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
    }
}
