// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets to series: one pass over packets in order of time, with bounded memory.

use crate::model::{Confidence, Flow, Origin, Quantity, Series};
use paceline_units::{Ecn, Time, TimeDelta};
use std::collections::{BTreeMap, VecDeque};

/// Length of an interval of packet series. Assumed: one frame group of the delay detectors is shorter, one report is longer.
pub const BIN: TimeDelta = TimeDelta::from_millis(100);
/// Intervals of a flow at most, 29 hours: bounds the memory for any input.
const BINS_MAX: usize = 1 << 20;
/// Intervals before and after a report on packets in which other reports do not count, 10 s. Assumed: longer gaps are rare, and a call
/// may change to another kind of reports.
const REPORTED: usize = 100;
/// Packets in flight at most. Older ones count as lost.
const IN_FLIGHT_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
struct Bin {
    sent_bits: f64,
    received_bits: f64,
    sent: u32,
    arrived: u32,
    repairs: u32,
    feedback: Reports,
    feedback_sent: Reports,
    delay: Option<(f64, f64)>,
    gap: f64,
    /// Packets that were sent ECN-capable, arrived so, arrived with CE, arrived with a cleared field, and did not arrive although they
    /// were sent ECN-capable.
    ecn: [u32; 5],
}

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Which packets arrived and when: transport-wide feedback and RFC 8888.
    PerPacket,
    /// Receiver reports, REMB, and reports whose kind is not known.
    Summary,
}

/// The number of reports of each kind.
#[derive(Clone, Copy, Default)]
struct Reports {
    per_packet: u32,
    summaries: u32,
}

impl Reports {
    fn count(&mut self, kind: ReportKind) {
        match kind {
            ReportKind::PerPacket => self.per_packet += 1,
            ReportKind::Summary => self.summaries += 1,
        }
    }
}

/// Accumulates the packets of a flow.
#[derive(Default)]
pub struct PacketSeries {
    origin: Option<Time>,
    bins: Vec<Bin>,
    left_out: bool,
    /// Packets in flight by key: send time and ECN field.
    in_flight: BTreeMap<u64, (Time, Ecn)>,
    order: VecDeque<u64>,
    last_arrival: Option<(Time, f64)>,
    least_delay: f64,
    last: Option<Time>,
    /// Whether departures, arrivals, delays and reports of either end were seen.
    saw: Saw,
}

/// What a series of packets can show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saw {
    /// Packets at the sender.
    pub departures: bool,
    /// Packets at the receiver.
    pub arrivals: bool,
    /// Delays from send times and arrival times.
    pub delays: bool,
    /// Reports at the sender.
    pub feedback: bool,
    /// Reports at the receiver.
    pub feedback_sent: bool,
    /// Which packets arrived.
    pub outcomes: bool,
    /// ECN-capable packets at the sender, ECN fields of arrivals (known even if nothing arrives), and an ECN-capable one of either.
    pub ecn_sent: bool,
    pub ecn_arrived: bool,
    pub ecn: bool,
}

impl PacketSeries {
    fn bin(&mut self, at: Time) -> Option<&mut Bin> {
        let origin = *self.origin.get_or_insert(at);
        // Times before the first packet belong to its interval.
        let index = ((at - origin).as_nanos().max(0) / BIN.as_nanos()) as usize;
        if index >= BINS_MAX {
            self.left_out = true;
            return None;
        }
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        self.last = self.last.max(Some(at));
        self.bins.get_mut(index)
    }

    /// A packet of media left the sender.
    pub fn departed(&mut self, at: Time, bytes: u64, is_repair: bool) {
        self.saw.departures = true;
        let Some(bin) = self.bin(at) else { return };
        bin.sent_bits += bytes as f64 * 8.0;
        bin.repairs += u32::from(is_repair);
    }

    /// A packet of media left the sender, whose arrival will be seen or not. `key` joins both.
    pub fn sent(&mut self, at: Time, key: u64, bytes: u64, is_repair: bool) {
        self.departed(at, bytes, is_repair);
        let Some(bin) = self.bin(at) else { return };
        bin.sent += 1;
        if self.in_flight.insert(key, (at, Ecn::NotEct)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > IN_FLIGHT_MAX
            && let Some(old) = self.order.pop_front()
        {
            self.in_flight.remove(&old);
        }
    }

    /// The arrival of a packet was seen. Returns its send time and the ECN field with which it was sent.
    pub fn outcome(&mut self, key: u64) -> Option<(Time, Ecn)> {
        self.saw.outcomes = true;
        let sent = self.in_flight.remove(&key)?;
        if let Some(bin) = self.bin(sent.0) {
            bin.arrived += 1;
            bin.ecn[4] = bin.ecn[4].saturating_sub(u32::from(sent.1.is_capable()));
        }
        Some(sent)
    }

    /// A packet left the sender with this ECN field; with its key if its arrival will be seen.
    pub fn ecn_sent(&mut self, at: Time, key: Option<u64>, ecn: Ecn) {
        if !ecn.is_capable() {
            return;
        }
        (self.saw.ecn_sent, self.saw.ecn) = (true, true);
        if let Some(packet) = key.and_then(|key| self.in_flight.get_mut(&key)) {
            packet.1 = ecn;
        }
        if let Some(bin) = self.bin(at) {
            bin.ecn[0] += 1;
            // Lost until its arrival is seen.
            bin.ecn[4] += u32::from(key.is_some());
        }
    }

    /// A report says that a packet that was sent ECN-capable at `at` did not arrive.
    pub fn ecn_lost(&mut self, at: Time) {
        if let Some(bin) = self.bin(at) {
            bin.ecn[4] += 1;
        }
    }

    /// The input shows the ECN fields of arrivals, even if nothing arrives.
    pub fn shows_ecn_of_arrivals(&mut self) {
        self.saw.ecn_arrived = true;
    }

    /// A packet arrived with this ECN field. `was_capable`: it is known to have left ECN-capable.
    pub fn ecn_arrived(&mut self, at: Time, was_capable: bool, ecn: Ecn) {
        self.saw.ecn_arrived = true;
        self.saw.ecn |= ecn.is_capable();
        let index = match ecn {
            Ecn::Ect0 | Ecn::Ect1 => 1,
            Ecn::Ce => 2,
            Ecn::NotEct if was_capable => 3,
            Ecn::NotEct => return,
        };
        if let Some(bin) = self.bin(at) {
            bin.ecn[index] += 1;
        }
    }

    /// Counts packets that were sent at `at` by what reports or gaps in the sequence say.
    pub fn counted(&mut self, at: Time, sent: u32, arrived: u32) {
        self.saw.outcomes = true;
        if let Some(bin) = self.bin(at) {
            bin.sent += sent;
            bin.arrived += arrived;
        }
    }

    /// A packet of media reached the receiver at `at`, `delay` seconds after it left, by any clock. Delays are shown above the
    /// smallest one.
    pub fn arrived(&mut self, at: Time, bytes: u64, delay: Option<f64>) {
        self.saw.arrivals = true;
        let Some(bin) = self.bin(at) else { return };
        bin.received_bits += bytes as f64 * 8.0;
        if let Some(delay) = delay {
            self.delay(at, at, delay);
        }
    }

    /// A delay of a packet that arrived at `arrival` is shown at `shown`.
    pub fn delay(&mut self, shown: Time, arrival: Time, delay: f64) {
        self.least_delay = if self.saw.delays { self.least_delay.min(delay) } else { delay };
        self.saw.delays = true;
        let gap = match self.last_arrival {
            // Arrivals minus departures, RFC 3550, section 6.4.1: positive if the packet waited longer than the one before.
            Some((last, last_delay)) if arrival > last => {
                (delay - last_delay).min((arrival - last).as_secs_f64()).max(0.0)
            }
            _ => 0.0,
        };
        self.last_arrival = Some((arrival, delay));
        if let Some(bin) = self.bin(shown) {
            let (low, high) = bin.delay.unwrap_or((delay, delay));
            bin.delay = Some((low.min(delay), high.max(delay)));
            bin.gap = bin.gap.max(gap);
        }
    }

    /// A report reached the sender.
    pub fn feedback(&mut self, at: Time, kind: ReportKind) {
        self.saw.feedback = true;
        if let Some(bin) = self.bin(at) {
            bin.feedback.count(kind);
        }
    }

    /// The receiver sent a report.
    pub fn feedback_sent(&mut self, at: Time, kind: ReportKind) {
        self.saw.feedback_sent = true;
        if let Some(bin) = self.bin(at) {
            bin.feedback_sent.count(kind);
        }
    }

    /// Returns whether it has no packets.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Returns what was seen.
    pub fn saw(&self) -> Saw {
        self.saw
    }

    /// Returns whether packets after the longest span were left out.
    pub fn left_out(&self) -> bool {
        self.left_out
    }

    /// Adds the series to a flow.
    pub fn finish(self, flow: &mut Flow) {
        let Some(origin) = self.origin else { return };
        let saw = self.saw;
        let end = self.last.unwrap_or(origin);
        let ends = match (saw.departures, saw.arrivals) {
            (true, true) => Origin::BothEnds,
            (true, false) => Origin::Sender,
            _ => Origin::Receiver,
        };
        let of_outcome = if saw.arrivals { ends } else { Origin::Reports };
        flow.span = (origin, end);
        let at = |index: usize| origin + TimeDelta::from_nanos(BIN.as_nanos() * index as i64);
        // The last interval is cut, so its rate would be too low.
        let whole = &self.bins[..self.bins.len().saturating_sub(1)];
        let mut add = |quantity, origin, value: &dyn Fn(&Bin) -> Option<f64>| {
            let points = whole.iter().enumerate().filter_map(|(index, bin)| Some((at(index), value(bin)?)));
            flow.series.insert(quantity, Series::of(origin, Confidence::Exact, points));
        };
        let per_second = 1.0 / BIN.as_secs_f64();
        if saw.departures {
            add(Quantity::SentRate, Origin::Sender, &|bin| Some(bin.sent_bits * per_second));
            add(Quantity::Repairs, Origin::Sender, &|bin| Some(f64::from(bin.repairs)));
        }
        if saw.arrivals {
            add(Quantity::ReceivedRate, Origin::Receiver, &|bin| Some(bin.received_bits * per_second));
        }
        if saw.outcomes {
            add(Quantity::PacketsSent, of_outcome, &|bin| Some(f64::from(bin.sent)));
            add(Quantity::PacketsLost, of_outcome, &|bin| Some(f64::from(bin.sent.saturating_sub(bin.arrived))));
        }
        let quantities =
            [Quantity::EctSent, Quantity::EctArrived, Quantity::CeArrived, Quantity::EctCleared, Quantity::EctLost];
        let both = saw.ecn_sent && saw.ecn_arrived;
        let is_seen = [saw.ecn_sent, saw.ecn_arrived, saw.ecn_arrived, both, both];
        for (index, quantity) in quantities.into_iter().enumerate().filter(|(index, _)| saw.ecn && is_seen[*index]) {
            let origin = if quantity == Quantity::EctSent { Origin::Sender } else { of_outcome };
            add(quantity, origin, &|bin| Some(f64::from(bin.ecn[index])));
        }
        if saw.delays {
            let least = self.least_delay;
            add(Quantity::DelayLow, of_outcome, &|bin| Some(bin.delay?.0 - least));
            add(Quantity::DelayHigh, of_outcome, &|bin| Some(bin.delay?.1 - least));
            add(Quantity::ArrivalGap, of_outcome, &|bin| bin.delay.map(|_| bin.gap));
        }
        // Receiver reports go on when nothing arrives any more. While packets are reported, they do not count.
        let mut add_reports = |quantity, origin, of: fn(&Bin) -> Reports| {
            let per_packet: Vec<usize> = (0..whole.len()).filter(|index| of(&whole[*index]).per_packet > 0).collect();
            let points = whole.iter().enumerate().map(|(index, bin)| {
                let next = per_packet.partition_point(|other| *other < index);
                let around = [next.checked_sub(1), Some(next)].into_iter().flatten();
                let mut near = around.filter_map(|nth| per_packet.get(nth)).map(|other| other.abs_diff(index));
                let reported = near.any(|distance| distance <= REPORTED);
                let reports = of(bin);
                let count = reports.per_packet + if reported { 0 } else { reports.summaries };
                (at(index), f64::from(count))
            });
            flow.series.insert(quantity, Series::of(origin, Confidence::Exact, points));
        };
        if saw.feedback {
            add_reports(Quantity::Feedback, Origin::Sender, |bin| bin.feedback);
        }
        if saw.feedback_sent {
            add_reports(Quantity::FeedbackSent, Origin::Receiver, |bin| bin.feedback_sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reports that count in each interval, with a receiver report each 500 ms and these reports on packets.
    fn counted(intervals: i64, per_packet: impl Fn(i64) -> bool) -> Vec<f64> {
        let mut packets = PacketSeries::default();
        for index in 0..intervals {
            let at = Time::ZERO + BIN * index;
            packets.departed(at, 1200, false);
            if index % 5 == 0 {
                packets.feedback(at, ReportKind::Summary);
            }
            if per_packet(index) {
                packets.feedback(at, ReportKind::PerPacket);
            }
        }
        let mut flow = Flow::default();
        packets.finish(&mut flow);
        flow.get(Quantity::Feedback).unwrap().points.iter().map(|(_, count)| *count).collect()
    }

    #[test]
    fn receiver_reports_do_not_hide_a_gap_of_reports_on_packets() {
        let gap = counted(20, |index| !(5..15).contains(&index));
        assert_eq!(gap[5..15], [0.0; 10], "receiver reports go on");
        assert_eq!((gap[4], gap[15], gap.iter().sum::<f64>()), (1.0, 1.0, 9.0));
        assert_eq!(counted(20, |_| false).iter().sum::<f64>(), 4.0, "without others they count");
        let changes = counted(401, |index| index < 200);
        assert_eq!(changes[200..300].iter().sum::<f64>(), 0.0);
        assert_eq!(changes[300..].iter().sum::<f64>(), 20.0, "10 s after the last report on packets they count again");
    }
}
