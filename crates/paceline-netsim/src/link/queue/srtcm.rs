// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single-rate three-colour policer (RFC 2697). With an excess burst of zero it is the plain policer of an operator.
//! The default rate is between those to which operators police video (Flach et al. 2016).

use super::QueueEntry;
use super::policer::{BUCKET_SIZE, Bucket, Colour, DROP_YELLOW, ECN, Meter, Policer, Refill, tokens};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Rate, Time};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "srtcm",
    summary: "policer of one rate and two bursts, RFC 2697: drops what exceeds them at once, behind it a FIFO queue",
    limit: QueueEntry::limit("300 ms", "the level of the queue behind the policer (RFC 8867, section 4.2)"),
    parameters: &[
        Parameter::new("rate", ParameterKind::Rate, "1 Mbps").about(
            "the committed information rate, CIR, of whole IP packets (RFC 2697, section 3; the default is assumed)",
        ),
        Parameter::new("burst", BUCKET_SIZE, "12500 B")
            .about("the committed burst size, CBS (RFC 2697, section 3; the default of 100 ms is assumed)"),
        Parameter::new("excess_burst", BUCKET_SIZE, "0 B")
            .about("the excess burst size, EBS, whose packets are yellow (RFC 2697, section 3); without it none is"),
        DROP_YELLOW,
        ECN,
    ],
    build: |setup| {
        let values = setup.values;
        Policer::boxed(SrTcm::new(values.rate("rate"), values.size("burst"), values.size("excess_burst")), setup)
    },
};

struct SrTcm {
    rate: Rate,
    committed: Bucket,
    excess: Bucket,
    refill: Refill,
}

impl SrTcm {
    fn new(rate: Rate, burst: DataSize, excess_burst: DataSize) -> Self {
        Self { rate, committed: Bucket::full(burst), excess: Bucket::full(excess_burst), refill: Refill::START }
    }
}

impl Meter for SrTcm {
    fn measure(&mut self, now: Time, size: DataSize) -> Colour {
        let over = self.committed.add(tokens(self.rate, self.refill.elapsed(now)));
        self.excess.add(over);
        if self.committed.has(size) {
            self.committed.take(size);
            Colour::Green
        } else if self.excess.has(size) {
            self.excess.take(size);
            Colour::Yellow
        } else {
            Colour::Red
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Colour::{Green, Red, Yellow};
    use super::*;

    #[test]
    fn colours_follow_the_vectors() {
        let size = DataSize::from_bytes;
        let mut meter = SrTcm::new(Rate::from_kbps(1000), size(3000), size(2000));
        let mut colours = Vec::new();
        for at in [0, 0, 0, 0, 0, 0, 8, 10, 50, 50] {
            colours.push(meter.measure(Time::from_millis(at), size(1000)));
        }
        assert_eq!(colours, [Green, Green, Green, Yellow, Yellow, Red, Green, Red, Green, Green]);
        assert_eq!((meter.committed.bytes(), meter.excess.bytes()), (1000, 2000));
    }

    #[test]
    fn steady_loss_is_the_excess() {
        // 1.2 Mbit/s over 1: packets of 1250 bytes each 25 / 3 ms.
        let mut meter = SrTcm::new(Rate::from_kbps(1000), size(12_500), DataSize::ZERO);
        let mut red = 0;
        for n in 0..60_000_i64 {
            let now = Time::from_nanos(n * 25_000_000 / 3);
            red += u32::from(meter.measure(now, size(1250)) == Red);
        }
        assert!((9_980..=10_000).contains(&red), "1 of 6: {red}");
        fn size(bytes: u64) -> DataSize {
            DataSize::from_bytes(bytes)
        }
    }
}
