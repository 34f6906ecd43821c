// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTP and RTCP of one transport to a flow: what a capture at the sender, at the receiver or at both ends shows, and what an event
//! log shows.

use crate::model::{Confidence, Flow, Mark, MarkKind, Origin, Quantity, Series};
use crate::packets::{BIN, PacketSeries, ReportKind};
use paceline_units::{Ecn, Time, TimeDelta};
use paceline_wire::{ArrivalOffset, Rtcp, RtpHeader, TWCC_TICK, ntp, parse_compound, unwrap_ticks};
use std::collections::{BTreeMap, VecDeque};

/// Where packets of a flow are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// At the sender.
    Sender,
    /// At the receiver.
    Receiver,
    /// At both.
    Both,
}

/// Packets whose report is awaited, and sender reports, at most.
const REPORTED_MAX: usize = 1 << 16;
const SENDER_REPORTS_MAX: usize = 64;
/// Parts of the time between two reports, over which their losses are spread.
const PARTS: u32 = 10;
/// Departures of a stream at most, one per interval: 400 s.
const DEPARTURES_MAX: usize = 1 << 12;
/// Streams of a transport at most.
const STREAMS_MAX: usize = 256;

/// Accumulates the packets of one transport.
pub struct Transport {
    ends: Ends,
    packets: PacketSeries,
    round_trip: Series,
    cap: Series,
    marks: Vec<Mark>,
    streams: BTreeMap<u32, Stream>,
    /// Packets by transport-wide sequence number or by stream and sequence number: send time, size and ECN field.
    awaited: BTreeMap<u64, (Time, u64, Ecn)>,
    transport_sequence: Unwrapped,
    /// The clock of the receiver in ticks, and the shift to the clock of the sender.
    ticks: Option<i64>,
    shift: Option<TimeDelta>,
    /// Middle bits of the NTP times of sender reports, and when they were sent.
    sender_reports: BTreeMap<u32, Time>,
    send_clock: Option<(u32, i64)>,
    has_packet_reports: bool,
    /// Whether reports on single packets are read.
    pub reads_packet_reports: bool,
    /// RTCP whose content is encrypted.
    pub encrypted_reports: u64,
    /// Reports on congestion that could be read.
    pub clear_reports: u64,
}

#[derive(Default)]
struct Stream {
    sequence: Unwrapped,
    highest: Option<u64>,
    /// Packets lost and highest sequence number of the last report, and when that packet was sent.
    reported: Option<(i64, u32, Time)>,
    /// The first packet of each interval: number and time at which it was sent.
    departures: VecDeque<(u64, Time)>,
}

impl Stream {
    fn departed(&mut self, number: u64, at: Time) {
        let is_new = |last: &(u64, Time)| number > last.0 && at - last.1 >= BIN;
        if self.departures.back().is_none_or(is_new) {
            self.departures.push_back((number, at));
        }
        if self.departures.len() > DEPARTURES_MAX {
            self.departures.pop_front();
        }
    }

    /// Returns when the packet with this sequence number was sent.
    fn departure(&self, sequence: u16) -> Option<Time> {
        let number = self.sequence.peek(sequence)?;
        let after = self.departures.partition_point(|(first, _)| *first <= number);
        Some(self.departures.get(after.checked_sub(1)?)?.1)
    }
}

/// A 16-bit counter without its wraps.
#[derive(Default)]
struct Unwrapped(Option<u64>);

impl Unwrapped {
    /// Returns the number nearest to the last one. The first is above 2^16, so that earlier ones are positive.
    fn next(&mut self, value: u16) -> u64 {
        let last = *self.0.get_or_insert(u64::from(value) + (1 << 16));
        let number = last.wrapping_add_signed(i64::from(value.wrapping_sub(last as u16) as i16));
        self.0 = Some(last.max(number));
        number
    }

    fn peek(&self, value: u16) -> Option<u64> {
        let last = self.0?;
        Some(last.wrapping_add_signed(i64::from(value.wrapping_sub(last as u16) as i16)))
    }
}

impl Transport {
    /// Creates a transport that is seen at these ends.
    pub fn new(ends: Ends) -> Self {
        let reports = || Series::new(Origin::Reports, Confidence::Exact);
        Self {
            ends,
            packets: PacketSeries::default(),
            round_trip: reports(),
            cap: reports(),
            marks: Vec::new(),
            streams: BTreeMap::new(),
            awaited: BTreeMap::new(),
            transport_sequence: Unwrapped::default(),
            ticks: None,
            shift: None,
            sender_reports: BTreeMap::new(),
            send_clock: None,
            has_packet_reports: false,
            reads_packet_reports: ends != Ends::Both,
            encrypted_reports: 0,
            clear_reports: 0,
        }
    }

    /// A packet of RTP left the sender. `bytes`: size on the network. `ecn`: [`Ecn::NotEct`] if it is not known.
    pub fn rtp_sent(&mut self, at: Time, header: &RtpHeader, bytes: u64, ecn: Ecn) {
        let Some(key) = self.key(header) else { return };
        if self.ends == Ends::Both {
            self.packets.sent(at, key, bytes, false);
            self.packets.shows_ecn_of_arrivals();
            return self.packets.ecn_sent(at, Some(key), ecn);
        }
        self.packets.ecn_sent(at, None, ecn);
        self.packets.departed(at, bytes, false);
        if let Some(stream) = self.streams.get_mut(&header.ssrc) {
            stream.departed(key & NUMBER, at);
        }
        let key = match header.transport_sequence {
            Some(sequence) => TRANSPORT | self.transport_sequence.next(sequence),
            None => key,
        };
        self.awaited.insert(key, (at, bytes, ecn));
        if self.awaited.len() > REPORTED_MAX {
            self.awaited.pop_first();
        }
    }

    /// A packet of RTP reached the receiver.
    pub fn rtp_arrived(&mut self, at: Time, header: &RtpHeader, bytes: u64, ecn: Ecn) {
        let Some(key) = self.key(header) else { return };
        if self.ends == Ends::Both {
            let sent = self.packets.outcome(key);
            self.packets.ecn_arrived(at, sent.is_some_and(|(_, sent)| sent.is_capable()), ecn);
            return self.packets.arrived(at, bytes, sent.map(|(sent, _)| (at - sent).as_secs_f64()));
        }
        self.packets.ecn_arrived(at, false, ecn);
        let Some(stream) = self.streams.get_mut(&header.ssrc) else { return };
        let number = key & NUMBER;
        let gap = match stream.highest {
            None => 0,
            Some(highest) if number > highest => number - highest - 1,
            Some(_) => {
                self.packets.counted(at, 0, 1);
                self.packets.arrived(at, bytes, None);
                return;
            }
        };
        stream.highest = Some(number);
        // A larger jump is a new start of the sender (1000: libwebrtc, `rtc_event_log_visualizer`).
        let gap = if gap > 1000 { 0 } else { gap as u32 };
        self.packets.counted(at, 1 + gap, 1);
        let delay = header.abs_send_time.map(|sent| at.since(Time::ZERO).as_secs_f64() - self.send_time(sent.bits()));
        self.packets.arrived(at, bytes, delay);
    }

    /// Returns the send time without its wraps, s (24 bits, 2^-18 s).
    fn send_time(&mut self, bits: u32) -> f64 {
        let (last, total) = self.send_clock.unwrap_or((bits, i64::from(bits)));
        let step = i64::from(((bits.wrapping_sub(last) << 8) as i32) >> 8);
        self.send_clock = Some((bits, total + step));
        (total + step) as f64 / f64::from(1 << 18)
    }

    fn key(&mut self, header: &RtpHeader) -> Option<u64> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&header.ssrc) {
            return None;
        }
        let number = self.streams.entry(header.ssrc).or_default().sequence.next(header.sequence);
        Some(stream_key(header.ssrc, number))
    }

    /// RTCP of the sender left it.
    pub fn rtcp_sent(&mut self, at: Time, bytes: &[u8]) {
        for packet in parse_compound(bytes).into_iter().flatten() {
            if let Rtcp::SenderReport { ntp, .. } = packet {
                self.sender_reports.insert(ntp::middle(ntp), at);
                if self.sender_reports.len() > SENDER_REPORTS_MAX {
                    let oldest = self.sender_reports.iter().min_by_key(|(_, at)| **at).map(|(ntp, _)| *ntp);
                    oldest.map(|ntp| self.sender_reports.remove(&ntp));
                }
            }
        }
    }

    /// RTCP of the receiver left it.
    pub fn report_sent(&mut self, at: Time, bytes: &[u8]) {
        if let Some(kind) = report_kind(bytes) {
            self.packets.feedback_sent(at, kind);
        }
    }

    /// RTCP of the receiver reached the sender, of which only the first bytes exist.
    pub fn cut_report_arrived(&mut self, at: Time, bytes: &[u8]) {
        if let Some(kind) = report_kind(bytes) {
            self.packets.feedback(at, kind);
        }
    }

    /// RTCP of the receiver reached the sender.
    pub fn report_arrived(&mut self, at: Time, bytes: &[u8]) {
        self.cut_report_arrived(at, bytes);
        let Ok(compound) = parse_compound(bytes) else {
            self.encrypted_reports += 1;
            return;
        };
        self.clear_reports += 1;
        for packet in compound {
            match packet {
                Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => {
                    for block in blocks {
                        self.report_block(at, &block);
                    }
                }
                Rtcp::Remb { rate, .. } => self.cap.push(at, rate.as_bps() as f64),
                Rtcp::TransportFeedback(feedback) if self.reads_packet_reports => {
                    let ticks = |sequence_ticks: i64, last: Option<i64>| {
                        last.map_or(sequence_ticks, |last| unwrap_ticks(last, sequence_ticks))
                    };
                    for (sequence, arrival) in feedback.packets() {
                        let Some(number) = self.transport_sequence.peek(sequence) else { continue };
                        let arrival = arrival.map(|arrival| {
                            let arrival = ticks(arrival, self.ticks);
                            self.ticks = Some(arrival);
                            TWCC_TICK * arrival
                        });
                        self.reported(TRANSPORT | number, arrival, None);
                    }
                }
                Rtcp::CongestionFeedback(feedback) if self.reads_packet_reports => {
                    let now = self.ticks.map_or(i64::from(feedback.timestamp), |last| {
                        unwrap_ticks(last, i64::from(feedback.timestamp))
                    });
                    self.ticks = Some(now);
                    for block in feedback.blocks() {
                        for (sequence, reception) in block.packets() {
                            let Some(number) = self.streams.get(&block.ssrc).and_then(|s| s.sequence.peek(sequence))
                            else {
                                continue;
                            };
                            self.packets.shows_ecn_of_arrivals();
                            let offset = reception.map(|reception| match reception.offset {
                                ArrivalOffset::Units(_) => reception.offset.in_timestamp_units().unwrap_or(0),
                                _ => 0,
                            });
                            let arrival = offset.map(|offset| {
                                TimeDelta::from_nanos(((now - i64::from(offset)) as f64 * 1e9 / 65536.0) as i64)
                            });
                            self.reported(
                                stream_key(block.ssrc, number),
                                arrival,
                                reception.map(|reception| reception.ecn),
                            );
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A report says when and with which ECN field a packet arrived, or that it did not.
    fn reported(&mut self, key: u64, arrival: Option<TimeDelta>, ecn: Option<Ecn>) {
        let Some((sent, bytes, sent_ecn)) = self.awaited.remove(&key) else { return };
        if let Some(ecn) = ecn {
            self.packets.ecn_arrived(sent, sent_ecn.is_capable(), ecn);
        } else if arrival.is_none() && sent_ecn.is_capable() {
            self.packets.ecn_lost(sent);
        }
        self.has_packet_reports = true;
        self.packets.counted(sent, 1, u32::from(arrival.is_some()));
        if let Some(arrival) = arrival {
            let shift = *self.shift.get_or_insert(sent.since(Time::ZERO) - arrival);
            let arrival = Time::ZERO + arrival + shift;
            self.packets.arrived(arrival, bytes, None);
            self.packets.delay(sent, arrival, (arrival - sent).as_secs_f64());
        }
    }

    fn report_block(&mut self, at: Time, block: &paceline_wire::ReportBlock) {
        if let Some(sent) = self.sender_reports.get(&block.last_sr).filter(|_| block.last_sr != 0) {
            let held = f64::from(block.delay_since_last_sr) / 65536.0;
            self.round_trip.push(at, ((at - *sent).as_secs_f64() - held).max(0.0));
        }
        let Some(stream) = self.streams.get_mut(&block.ssrc) else { return };
        let (lost, highest) = (i64::from(block.cumulative_lost), block.highest_sequence);
        // Losses are those of packets that were sent between the two that two reports name.
        let at = stream.departure(highest as u16).unwrap_or(at);
        if let Some((lost_before, highest_before, before)) = stream.reported.replace((lost, highest, at))
            && self.ends == Ends::Sender
            && !self.has_packet_reports
        {
            let sent = highest.wrapping_sub(highest_before).min(1 << 16);
            let lost = (lost - lost_before).clamp(0, i64::from(sent)) as u32;
            // A report does not say which they were: somewhere since the last one.
            let part = |count: u32, index: u32| count * (index + 1) / PARTS - count * index / PARTS;
            for index in 0..PARTS {
                let time = before + (at - before).scale((f64::from(index) + 0.5) / f64::from(PARTS));
                self.packets.counted(time, part(sent, index), part(sent, index).saturating_sub(part(lost, index)));
            }
        }
    }

    /// Adds a single event.
    pub fn mark(&mut self, at: Time, kind: MarkKind) {
        self.marks.push(Mark { at, kind });
    }

    /// Returns whether it has no packets of media.
    pub fn is_empty(&self) -> bool {
        let saw = self.packets.saw();
        !saw.departures && !saw.arrivals
    }

    pub fn finish(mut self, name: String) -> Flow {
        let from_reports = self.ends == Ends::Sender;
        let mut flow = Flow { name, is_sent: self.ends != Ends::Receiver, ..Flow::default() };
        flow.marks = std::mem::take(&mut self.marks);
        self.packets.finish(&mut flow);
        if from_reports {
            let quantities = [
                Quantity::ReceivedRate,
                Quantity::PacketsSent,
                Quantity::PacketsLost,
                Quantity::DelayLow,
                Quantity::DelayHigh,
                Quantity::ArrivalGap,
            ];
            for quantity in quantities {
                if let Some(series) = flow.series.get_mut(&quantity) {
                    series.origin = Origin::Reports;
                }
            }
        }
        flow.series.insert(Quantity::RoundTrip, self.round_trip);
        flow.series.insert(Quantity::Cap, self.cap);
        flow.finish();
        flow
    }
}

/// Marks keys of transport-wide sequence numbers.
const TRANSPORT: u64 = 1 << 63;
/// The part of a key that is a number of its stream.
const NUMBER: u64 = (1 << 31) - 1;

fn stream_key(ssrc: u32, number: u64) -> u64 {
    u64::from(ssrc) << 31 | (number & NUMBER)
}

/// Returns what the first packet of a compound reports on congestion, if it does. Its header is clear in SRTCP (RFC 3711, section 3.4).
fn report_kind(bytes: &[u8]) -> Option<ReportKind> {
    match bytes {
        // RR, SR, APP.
        [_, 200 | 201 | 204, ..] => Some(ReportKind::Summary),
        // Transport-wide feedback and RFC 8888.
        [first, 205, ..] if matches!(first & 0x1F, 11 | 15) => Some(ReportKind::PerPacket),
        // Payload feedback with REMB.
        [first, 206, ..] if first & 0x1F == 15 => Some(ReportKind::Summary),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::{self, EcnFinding};
    use paceline_wire::{CompoundWriter, Reception, ReportBlock};

    #[test]
    fn losses_are_shown_when_the_packets_were_sent() {
        let mut transport = Transport::new(Ends::Sender);
        for index in 0..200u16 {
            let header = RtpHeader { ssrc: 7, sequence: index, ..RtpHeader::default() };
            transport.rtp_sent(Time::from_secs_f64(0.05 * f64::from(index)), &header, 1000, Ecn::NotEct);
        }
        // Three reports that a gap held up: of the packets of the first second, of 5 s, and of 10 s.
        for (at, highest_sequence, cumulative_lost) in [(10.0, 20, 0), (10.01, 100, 0), (10.02, 199, 50)] {
            let block = ReportBlock { ssrc: 7, cumulative_lost, highest_sequence, ..ReportBlock::default() };
            transport.report_block(Time::from_secs_f64(at), &block);
        }
        transport.packets.departed(Time::from_secs(20), 1000, false);
        let flow = transport.finish("sent".to_owned());
        let lost = |from, to| flow.losses(Time::from_secs(from), Time::from_secs(to)).map(|(lost, _)| lost);
        assert_eq!(lost(5, 10), Some(50.0));
        assert_eq!((lost(0, 5), lost(10, 20)), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn at_both_ends_the_ecn_field_of_each_packet_is_compared() {
        let sums = |sent: Ecn, arrived: Ecn| {
            let mut transport = Transport::new(Ends::Both);
            for index in 0..100u16 {
                let header = RtpHeader { ssrc: 7, sequence: index, ..RtpHeader::default() };
                let at = Time::from_secs_f64(0.05 * f64::from(index));
                transport.rtp_sent(at, &header, 1000, sent);
                transport.rtp_arrived(at + TimeDelta::from_millis(20), &header, 1000, arrived);
            }
            let flow = transport.finish("call".to_owned());
            [Quantity::EctArrived, Quantity::CeArrived, Quantity::EctCleared]
                .map(|quantity| flow.get(quantity).map(|series| series.sum(Time::ZERO, Time::MAX) > 90.0))
        };
        assert_eq!(sums(Ecn::Ect1, Ecn::Ect1), [Some(true), Some(false), Some(false)]);
        assert_eq!(sums(Ecn::Ect1, Ecn::Ce), [Some(false), Some(true), Some(false)]);
        assert_eq!(sums(Ecn::Ect1, Ecn::NotEct), [Some(false), Some(false), Some(true)]);
        assert_eq!(sums(Ecn::NotEct, Ecn::NotEct), [None; 3], "ECN is not used");
    }

    /// Returns the ECN finding of 200 packets, of which every second one has ECT(1), and how many of those were lost. `fate`: the ECN
    /// field with which a packet arrives, if it does. At the sender, RFC 8888 reports show it for packets before `reported`.
    fn ecn_finding(ends: Ends, reported: u16, fate: impl Fn(Ecn) -> Option<Ecn>) -> (EcnFinding, Option<f64>) {
        let mut transport = Transport::new(ends);
        let mut report = [0; 200];
        let sent = |index: u16| if index.is_multiple_of(2) { Ecn::Ect1 } else { Ecn::NotEct };
        for index in 0..200u16 {
            let header = RtpHeader { ssrc: 7, sequence: index, ..RtpHeader::default() };
            let at = Time::from_secs_f64(0.05 * f64::from(index));
            transport.rtp_sent(at, &header, 1000, sent(index));
            if ends == Ends::Both
                && let Some(ecn) = fate(sent(index))
            {
                transport.rtp_arrived(at + TimeDelta::from_millis(20), &header, 1000, ecn);
            }
            if ends == Ends::Sender && index % 10 == 9 && index < reported {
                let reception = |ecn| Reception { ecn, offset: ArrivalOffset::Units(20) };
                let receptions: Vec<_> = (index - 9..=index).map(|index| fate(sent(index)).map(reception)).collect();
                let mut writer = CompoundWriter::new(&mut report);
                let timestamp = (at.as_secs_f64() * 65536.0) as u32;
                writer.congestion_feedback(1, timestamp, &[(7, index - 9, &receptions)]).unwrap();
                let len = writer.finish();
                transport.report_arrived(at, &report[..len]);
            }
        }
        let ecn = ecn::of_flow(&transport.finish("call".to_owned())).unwrap();
        (ecn.finding, ecn.lost)
    }

    #[test]
    fn packets_with_ect_that_never_arrive_are_dropped() {
        let only_without = |ecn: Ecn| Some(ecn).filter(|ecn| !ecn.is_capable());
        for ends in [Ends::Sender, Ends::Both] {
            let (finding, lost) = ecn_finding(ends, 200, only_without);
            assert_eq!(finding, EcnFinding::Dropped, "{ends:?}");
            assert!(lost.is_some_and(|lost| (95.0..=100.0).contains(&lost)), "{ends:?}: {lost:?}");
            assert_eq!(ecn_finding(ends, 200, |_| None).0, EcnFinding::Dropped, "{ends:?}: nothing arrives");
            let cleared = ecn_finding(ends, 200, |_| Some(Ecn::NotEct));
            assert_eq!(cleared, (EcnFinding::Bleached, Some(0.0)), "{ends:?}");
            assert_eq!(ecn_finding(ends, 200, Some).0, EcnFinding::Unmarked, "{ends:?}");
        }
        // Reports on half of the packets show nothing of the others; without reports nothing is known.
        assert_eq!(ecn_finding(Ends::Sender, 100, only_without).0, EcnFinding::Unknown);
        assert_eq!(ecn_finding(Ends::Sender, 0, only_without), (EcnFinding::Unknown, None));
    }

    #[test]
    fn only_losses_of_packets_with_ect_count_for_ecn() {
        let only_with = |ecn: Ecn| Some(ecn).filter(|ecn| ecn.is_capable());
        for ends in [Ends::Sender, Ends::Both] {
            assert_eq!(ecn_finding(ends, 200, only_with), (EcnFinding::Unmarked, Some(0.0)), "{ends:?}");
        }
    }
}
