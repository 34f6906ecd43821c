// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control feedback (RFC 8888): records per SSRC which packets arrived, when, and with which ECN mark.
//!
//! Each report covers, for each SSRC, everything since the beginning of the previous report. Every packet is thus in
//! two reports, and one lost report loses nothing. This costs 2 bytes per packet. Covering packets three times would
//! protect against two lost reports in a row, which is left to the guard of the send half. A packet that arrives after
//! it was reported missing makes the next two reports begin with it. If nothing more arrives, the last packets are
//! still reported a second time, because a sender whose window is full waits for them.
//!
//! A report with more packets than fit into a datagram is divided into several. Packets more than [`LATE_MAX`] below
//! the highest number of their SSRC are not reported any more, neither as received nor as missing.
//!
//! If a packet arrives more than once, its first arrival counts, and it is marked if any copy is marked.

use super::LATE_MAX;
use super::report_interval::ReportInterval;
use crate::IP_UDP_HEADERS;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use paceline_units::{DataSize, Ecn, RemoteTime, TimeDelta};
use paceline_wire::{ArrivalOffset, CompoundWriter, Reception, ntp};
use paceline_wire::{FIRST_CYCLE, unwrap_after};

/// Number of reports that cover each packet.
const REPORTS_PER_PACKET: usize = 2;
/// Number of new packets at which a report is sent early: with those that it repeats it fills a datagram.
const REPORT_EARLY: usize = 50;
/// The most SSRCs in one datagram.
const BLOCKS_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct CongestionFeedbackBuilder {
    pub(super) interval: ReportInterval,
    ssrcs: Vec<SsrcRecord>,
    /// A packet has not been reported [`REPORTS_PER_PACKET`] times yet.
    pending: bool,
    /// A report is partly written.
    open: bool,
    /// Packets received since the last report began.
    fresh: usize,
    /// Size of the written part of the open report.
    written: DataSize,
    /// Scratch space: the packets of a datagram.
    packets: Vec<Option<Reception>>,
}

#[derive(Clone, Debug)]
struct SsrcRecord {
    ssrc: u32,
    /// Unwrapped number of `packets[0]`.
    first: u64,
    /// Arrival in 1/65536 s and ECN mark, up to the highest received number; at most [`LATE_MAX`].
    packets: VecDeque<Option<(i64, Ecn)>>,
    /// Element `n` is the lowest number that no more than `n` of the last reports cover.
    uncovered: [u64; REPORTS_PER_PACKET],
    /// The part of the open report that is not written yet.
    remaining: Range<u64>,
}

impl CongestionFeedbackBuilder {
    pub fn new(interval: TimeDelta, longest: TimeDelta, ssrcs: impl Iterator<Item = u32>) -> Self {
        Self {
            interval: ReportInterval::new(interval, longest),
            ssrcs: ssrcs.map(SsrcRecord::new).collect(),
            pending: false,
            open: false,
            fresh: 0,
            written: DataSize::ZERO,
            packets: Vec::with_capacity(2 * REPORT_EARLY),
        }
    }

    /// Adds SSRCs to the following reports.
    pub fn add_ssrcs(&mut self, ssrcs: &[u32]) {
        self.ssrcs.extend(ssrcs.iter().copied().map(SsrcRecord::new));
    }

    /// Leaves SSRCs out of the following reports.
    pub fn remove_ssrcs(&mut self, ssrcs: &[u32]) {
        self.ssrcs.retain(|record| !ssrcs.contains(&record.ssrc));
    }

    /// Records the arrival of a packet with this RTP sequence number.
    pub fn handle_packet(&mut self, now: RemoteTime, ssrc: u32, number: u16, ecn: Ecn, size: DataSize) {
        self.interval.handle_packet(now, size);
        let Some(record) = self.ssrcs.iter_mut().find(|record| record.ssrc == ssrc) else { return };
        if !record.handle_packet(ntp::units(now.as_nanos()), number, ecn) {
            return;
        }
        if !core::mem::replace(&mut self.pending, true) {
            self.interval.start(now);
        }
        self.fresh += 1;
        if self.fresh >= REPORT_EARLY {
            self.interval.expire(now);
        }
    }

    /// Writes the next datagram of the report that is due. Call until it returns false.
    pub fn write(&mut self, now: RemoteTime, sender_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        if self.open && !self.has_rest() {
            self.finish_report(now); // the rest was on SSRCs that were removed
        }
        if !self.open {
            if !self.pending || !self.interval.is_due(now) {
                return false;
            }
            self.ssrcs.iter_mut().for_each(SsrcRecord::begin_report);
            self.pending = self.ssrcs.iter().any(SsrcRecord::is_pending);
            self.fresh = 0;
            if !self.has_rest() {
                return false;
            }
        }
        let timestamp = ntp::units(now.as_nanos());
        self.packets.clear();
        let (mut heads, mut count) = ([(0, 0, 0); BLOCKS_MAX], 0);
        for record in self.ssrcs.iter_mut().filter(|record| !record.remaining.is_empty()).take(BLOCKS_MAX) {
            let room = writer.congestion_feedback_room(heads[..count].iter().map(|head| head.2));
            if room == 0 {
                break;
            }
            let taken = record.take(room);
            heads[count] = (record.ssrc, taken.start as u16, (taken.end - taken.start) as usize);
            count += 1;
            self.packets.extend(record.receptions(taken, timestamp));
        }
        let mut rest = &self.packets[..];
        let mut blocks: [(u32, u16, &[_]); BLOCKS_MAX] = [(0, 0, &[]); BLOCKS_MAX];
        for (block, (ssrc, begin, len)) in blocks.iter_mut().zip(&heads[..count]) {
            let packets;
            (packets, rest) = rest.split_at(*len);
            *block = (*ssrc, *begin, packets);
        }
        let written = writer.congestion_feedback(sender_ssrc, timestamp as u32, &blocks[..count]);
        debug_assert!(written.is_ok(), "the blocks were chosen to fit");
        self.written += IP_UDP_HEADERS + DataSize::from_bytes(writer.len() as u64);
        self.open = self.has_rest();
        if !self.open {
            self.finish_report(now);
        }
        written.is_ok()
    }

    /// Returns whether a part of the open report is not written yet.
    fn has_rest(&self) -> bool {
        self.ssrcs.iter().any(|record| !record.remaining.is_empty())
    }

    fn finish_report(&mut self, now: RemoteTime) {
        self.open = false;
        self.interval.handle_report(now, core::mem::take(&mut self.written));
    }

    /// Returns the time at which the next report is due.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        self.interval.deadline().filter(|_| self.open || self.pending)
    }
}

impl SsrcRecord {
    fn new(ssrc: u32) -> Self {
        Self { ssrc, first: 0, packets: VecDeque::new(), uncovered: [0; REPORTS_PER_PACKET], remaining: 0..0 }
    }

    fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    fn is_pending(&self) -> bool {
        self.uncovered.iter().any(|from| *from < self.end())
    }

    /// Records an arrival. Returns whether it is the first with its number.
    fn handle_packet(&mut self, arrival: i64, number: u16, ecn: Ecn) -> bool {
        if self.packets.is_empty() {
            self.first = number as u64 + FIRST_CYCLE;
            self.uncovered = [self.first; REPORTS_PER_PACKET];
        }
        let sequence = unwrap_after(number, self.end(), LATE_MAX);
        while sequence < self.first {
            self.packets.push_front(None);
            self.first -= 1;
        }
        while sequence >= self.end() {
            self.packets.push_back(None);
            if self.packets.len() as u64 > LATE_MAX {
                self.packets.pop_front();
                self.first += 1;
            }
        }
        // The rest of an open report loses what is too old now.
        self.remaining.start = self.remaining.start.max(self.first).min(self.remaining.end);
        let packet = &mut self.packets[(sequence - self.first) as usize];
        if let Some((_, mark)) = packet {
            if ecn == Ecn::Ce {
                *mark = ecn;
            }
            return false;
        }
        *packet = Some((arrival, ecn));
        self.uncovered[0] = self.uncovered[0].min(sequence);
        true
    }

    /// Begins a report on everything that fewer than [`REPORTS_PER_PACKET`] reports have covered.
    fn begin_report(&mut self) {
        self.remaining = self.uncovered.into_iter().fold(self.end(), u64::min)..self.end();
        self.uncovered.rotate_right(1);
        self.uncovered[0] = self.end();
    }

    /// Takes at most `room` packets from the open report.
    fn take(&mut self, room: usize) -> Range<u64> {
        let start = self.remaining.start.max(self.first);
        let end = self.remaining.end.min(start + room as u64);
        self.remaining.start = end;
        start..end
    }

    fn receptions(&self, taken: Range<u64>, timestamp: i64) -> impl Iterator<Item = Option<Reception>> {
        let index = |sequence| (sequence - self.first) as usize;
        let reception = move |(arrival, ecn)| Reception { ecn, offset: ArrivalOffset::between(arrival, timestamp) };
        self.packets.range(index(taken.start)..index(taken.end)).map(move |packet| packet.map(reception))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{INTERVAL, LONGEST, SIZE, at, mean_interval};
    use super::*;
    use paceline_wire::{Rtcp, parse_compound};

    fn builder(longest: TimeDelta) -> CongestionFeedbackBuilder {
        CongestionFeedbackBuilder::new(INTERVAL, longest, [7, 8].into_iter())
    }
    fn receive(r: &mut CongestionFeedbackBuilder, ms: i64, ssrc: u32, number: u16) {
        r.handle_packet(at(ms), ssrc, number, Ecn::Ect1, SIZE);
    }

    /// Blocks of every datagram that is due: SSRC, first number, arrivals in ms; ECN mark of each received packet.
    type Datagrams = Vec<Vec<(u32, u16, Vec<Option<i64>>)>>;
    fn reports(r: &mut CongestionFeedbackBuilder, now: RemoteTime) -> (Datagrams, Vec<Ecn>) {
        let (mut datagrams, mut marks) = (Vec::new(), Vec::new());
        loop {
            let mut buffer = [0; 256];
            let mut writer = CompoundWriter::new(&mut buffer);
            if !r.write(now, 1, &mut writer) {
                return (datagrams, marks);
            }
            let len = writer.finish();
            let packet = parse_compound(&buffer[..len]).unwrap().into_iter().next();
            let Some(Rtcp::CongestionFeedback(f)) = packet else { panic!() };
            assert_eq!((f.sender_ssrc, f.timestamp), (1, ntp::units(now.as_nanos()) as u32));
            let ms = |reception: Reception| {
                let units = f.timestamp as i64 - reception.offset.in_timestamp_units().unwrap() as i64;
                (units as f64 / 65.536).round() as i64
            };
            let block = |b: paceline_wire::CongestionBlock<'_>| {
                (b.ssrc, b.begin_sequence, b.packets().map(|(_, p)| p.map(ms)).collect())
            };
            datagrams.push(f.blocks().map(block).collect());
            marks.extend(f.blocks().flat_map(|b| b.packets().filter_map(|(_, p)| p).map(|p| p.ecn)));
        }
    }

    #[test]
    fn every_packet_is_in_two_reports() {
        let mut r = builder(INTERVAL);
        assert_eq!(r.poll_timeout(), None);
        for (ms, number) in [(0, 10), (1, 11), (2, 13), (3, 11)] {
            receive(&mut r, ms, 7, number);
        }
        assert_eq!(r.poll_timeout(), Some(at(50)));
        assert_eq!(reports(&mut r, at(49)).0, Datagrams::new());
        let first = vec![Some(0), Some(1), None, Some(2)];
        assert_eq!(reports(&mut r, at(50)).0, [[(7, 10, first.clone())]]);
        // 12 arrives late and 14 with it; another SSRC begins.
        receive(&mut r, 60, 7, 12);
        receive(&mut r, 61, 7, 14);
        receive(&mut r, 62, 8, 65_535);
        let second = vec![Some(0), Some(1), Some(60), Some(2), Some(61)];
        assert_eq!(reports(&mut r, at(100)).0, [[(7, 10, second.clone()), (8, 65_535, vec![Some(62)])]]);
        // Nothing new arrived since the second report, so its new packets are reported once more.
        assert_eq!(r.poll_timeout(), Some(at(150)));
        assert_eq!(reports(&mut r, at(150)).0, [[(7, 12, second[2..].to_vec()), (8, 65_535, vec![Some(62)])]]);
        assert_eq!(r.poll_timeout(), None);
        // A packet before the first one, and the numbers between them.
        receive(&mut r, 200, 7, 8);
        assert_eq!(reports(&mut r, at(250)).0, [[(7, 8, [&[Some(200), None][..], &second].concat())]]);
        receive(&mut r, 260, 7, 15);
        let all = [&[Some(200), None][..], &second, &[Some(260)]].concat();
        assert_eq!(reports(&mut r, at(300)).0, [[(7, 8, all)]]);
        assert_eq!(reports(&mut r, at(350)).0, [[(7, 15, vec![Some(260)])]]);
    }

    #[test]
    fn any_marked_copy_marks_the_packet_and_first_arrival_counts() {
        let mut r = builder(INTERVAL);
        for (ms, number, ecn) in [
            (0, 1, Ecn::Ect0),
            (1, 2, Ecn::Ce),
            (2, 1, Ecn::Ce),
            (3, 2, Ecn::Ect0),
            (4, 3, Ecn::Ect0),
            (5, 3, Ecn::NotEct),
        ] {
            r.handle_packet(at(ms), 7, number, ecn, SIZE);
        }
        let (datagrams, marks) = reports(&mut r, at(50));
        assert_eq!(datagrams, [[(7, 1, vec![Some(0), Some(1), Some(4)])]]);
        assert_eq!(marks, [Ecn::Ce, Ecn::Ce, Ecn::Ect0]);
    }

    #[test]
    fn a_long_report_is_cut_into_datagrams() {
        let mut r = builder(INTERVAL);
        receive(&mut r, 0, 7, 65_500);
        receive(&mut r, 1, 7, 65_500u16.wrapping_add(300));
        receive(&mut r, 2, 8, 5);
        let (datagrams, _) = reports(&mut r, at(50));
        // 118 packets fit into 256 bytes; the third datagram has 65 and the other SSRC.
        let shape: Vec<Vec<_>> =
            datagrams.iter().map(|d| d.iter().map(|(ssrc, begin, p)| (*ssrc, *begin, p.len())).collect()).collect();
        assert_eq!(shape, [vec![(7, 65_500, 118)], vec![(7, 82, 118)], vec![(7, 200, 65), (8, 5, 1)]]);
        assert_eq!((datagrams[0][0].2[0], datagrams[2][0].2[64]), (Some(0), Some(1)));
        assert!(datagrams[1][0].2.iter().all(Option::is_none));
        assert_eq!(r.poll_timeout(), Some(at(100)));
    }

    /// A report of three datagrams, of which the first has left when numbers jump ahead.
    #[test]
    fn packets_that_become_too_old_are_left_out_of_an_open_report() {
        for (number, rest) in
            [(500, vec![(100 + 118, 118), (100 + 236, 64)]), (1500, vec![]), (1300, vec![(277, 118), (395, 5)])]
        {
            let mut r = builder(INTERVAL);
            receive(&mut r, 0, 7, 100);
            receive(&mut r, 1, 7, 399);
            let mut buffer = [0; 256];
            assert!(r.write(at(50), 1, &mut CompoundWriter::new(&mut buffer)));
            receive(&mut r, 51, 7, number);
            let (datagrams, _) = reports(&mut r, at(50));
            let shape: Vec<_> = datagrams.iter().flatten().map(|(_, begin, p)| (*begin, p.len())).collect();
            assert_eq!(shape, rest, "{number}");
            let (datagrams, _) = reports(&mut r, at(100));
            assert_eq!(datagrams.last().unwrap().last().unwrap().2.last(), Some(&Some(51)), "{number}");
        }
    }

    /// A report of three datagrams, of which the first has left, and one that has not begun.
    #[test]
    fn removed_ssrcs_leave_no_empty_report() {
        let mut r = builder(INTERVAL);
        receive(&mut r, 0, 7, 100);
        receive(&mut r, 1, 7, 399);
        let mut buffer = [0; 256];
        assert!(r.write(at(50), 1, &mut CompoundWriter::new(&mut buffer)));
        r.remove_ssrcs(&[7, 17]);
        assert_eq!(reports(&mut r, at(50)).0, Datagrams::new());
        assert_eq!(reports(&mut r, at(100)).0, Datagrams::new());
        assert_eq!(r.poll_timeout(), None);
        receive(&mut r, 110, 8, 5);
        let due = r.poll_timeout().unwrap();
        assert!((at(110)..=at(160)).contains(&due));
        r.remove_ssrcs(&[8, 18]);
        assert_eq!(reports(&mut r, due).0, Datagrams::new());
        assert_eq!(r.poll_timeout(), None);
        r.add_ssrcs(&[9, 19]);
        receive(&mut r, 300, 9, 1);
        let due = r.poll_timeout().unwrap();
        assert_eq!(reports(&mut r, due).0, [[(9, 1, vec![Some(300)])]]);
    }

    #[test]
    fn only_the_end_of_a_wide_gap_is_reported() {
        for gap in [1000, 1023, 1024, 5000, 40_000, 60_000u16] {
            let mut r = builder(INTERVAL);
            receive(&mut r, 0, 7, 65_000);
            receive(&mut r, 1, 7, 65_000u16.wrapping_add(gap));
            let (datagrams, _) = reports(&mut r, at(50));
            let packets: Vec<_> = datagrams.iter().flatten().flat_map(|(_, _, packets)| packets).collect();
            assert_eq!(packets.len(), (gap as usize + 1).min(1024), "{gap}");
            assert_eq!(packets.iter().filter(|a| a.is_some()).count(), if gap <= 1023 { 2 } else { 1 });
            assert_eq!(packets.last(), Some(&&Some(1)));
            let begin = 65_000u16.wrapping_add(gap.saturating_sub(1023));
            assert_eq!(datagrams[0][0].1, begin, "{gap}");
        }
    }

    #[test]
    fn numbers_wrap_and_high_rates_are_reported_early() {
        let mut r = builder(INTERVAL);
        let (mut times, mut datagrams, mut most) = (vec![0u8; 200_000], 0, 0);
        for n in 0..200_000u32 {
            let now = RemoteTime::from_nanos(n as i64 * 100_000); // 10,000 a second
            r.handle_packet(now, 7, n as u16, Ecn::Ect0, SIZE);
            for (_, begin, packets) in reports(&mut r, now).0.into_iter().flatten() {
                assert!(packets.iter().all(Option::is_some));
                let begin = n - (n as u16).wrapping_sub(begin) as u32;
                (begin..).take(packets.len()).for_each(|n| times[n as usize] += 1);
                datagrams += 1;
                most = most.max(packets.len());
            }
        }
        assert!(times[..199_900].iter().all(|times| *times == 2));
        assert_eq!((datagrams, most), (4000, 100), "50 new and 50 repeated packets");
    }

    #[test]
    fn reports_take_at_most_five_percent() {
        // 5 kbit/s for reports of 28 + 20 bytes and 2 to 6 packets, 52 to 60 bytes.
        let mut r = builder(LONGEST);
        let mean = mean_interval(
            &mut r,
            |r, now, number| r.handle_packet(now, 7, number, Ecn::Ect1, SIZE),
            CongestionFeedbackBuilder::poll_timeout,
            |r, now| assert_eq!(reports(r, now).0.len(), 1),
        );
        assert!((83.0..=96.0).contains(&mean), "{mean} ms");
    }
}
