// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two-rate three-colour policer (RFC 2698). The default of the committed rate is between those to which operators police
//! video (Flach et al. 2016), that of the peak rate is twice as high.

use super::QueueEntry;
use super::policer::{BUCKET_SIZE, Bucket, Colour, DROP_YELLOW, ECN, Meter, Policer, Refill, tokens};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, Rate, Time};

pub(super) const ENTRY: QueueEntry = QueueEntry {
    name: "trtcm",
    summary: "policer of a committed and a peak rate, RFC 2698: drops what exceeds the peak at once, behind it a FIFO queue",
    limit: QueueEntry::limit("300 ms", "the level of the queue behind the policer (RFC 8867, section 4.2)"),
    parameters: &[
        Parameter::new("rate", ParameterKind::Rate, "1 Mbps").about(
            "the committed information rate, CIR, of whole IP packets (RFC 2698, section 3; the default is assumed)",
        ),
        Parameter::new("burst", BUCKET_SIZE, "12500 B")
            .about("the committed burst size, CBS (RFC 2698, section 3; the default of 100 ms is assumed)"),
        Parameter::new("peak_rate", ParameterKind::Rate, "2 Mbps").about(
            "the peak information rate, PIR, above which packets are red (RFC 2698, section 3; the default is assumed)",
        ),
        Parameter::new("peak_burst", BUCKET_SIZE, "25000 B")
            .about("the peak burst size, PBS (RFC 2698, section 3; the default of 100 ms is assumed)"),
        DROP_YELLOW,
        ECN,
    ],
    build: |setup| {
        let values = setup.values;
        let (committed, peak) = (values.rate("rate"), values.rate("peak_rate"));
        Policer::boxed(TrTcm::new((committed, values.size("burst")), (peak, values.size("peak_burst"))), setup)
    },
};

struct TrTcm {
    committed_rate: Rate,
    peak_rate: Rate,
    committed: Bucket,
    peak: Bucket,
    refill: Refill,
}

impl TrTcm {
    /// Creates the meter from two rates, each with its burst size.
    fn new((committed_rate, burst): (Rate, DataSize), (peak_rate, peak_burst): (Rate, DataSize)) -> Self {
        let (committed, peak) = (Bucket::full(burst), Bucket::full(peak_burst));
        Self { committed_rate, peak_rate, committed, peak, refill: Refill::START }
    }
}

impl Meter for TrTcm {
    fn measure(&mut self, now: Time, size: DataSize) -> Colour {
        let elapsed = self.refill.elapsed(now);
        self.committed.add(tokens(self.committed_rate, elapsed));
        self.peak.add(tokens(self.peak_rate, elapsed));
        if !self.peak.has(size) {
            return Colour::Red;
        }
        self.peak.take(size);
        if !self.committed.has(size) {
            return Colour::Yellow;
        }
        self.committed.take(size);
        Colour::Green
    }
}

#[cfg(test)]
mod tests {
    use super::Colour::{Green, Red, Yellow};
    use super::*;

    #[test]
    fn colours_follow_the_vectors() {
        let (size, kbps) = (DataSize::from_bytes, Rate::from_kbps);
        let mut meter = TrTcm::new((kbps(1000), size(2000)), (kbps(2000), size(4000)));
        let mut colours = Vec::new();
        for at in [0, 0, 0, 0, 0, 4, 8, 16] {
            colours.push(meter.measure(Time::from_millis(at), size(1000)));
        }
        assert_eq!(colours, [Green, Green, Yellow, Yellow, Red, Yellow, Green, Green]);
        assert_eq!((meter.peak.bytes(), meter.committed.bytes()), (1000, 0));
    }
}
