//! The receiver's record for congestion control feedback (RFC 8888): what came on each SSRC, when, and how it was marked.
//!
//! Each report covers, for each SSRC, everything since the beginning of the one before: every packet is told of in two
//! reports, so that one lost report loses nothing. It costs 2 bytes a packet; three times would guard against two losses
//! in a row, which the guard of the send half is for. A packet that comes after it was told missing makes the next two
//! reports begin with it. If nothing more comes, the last packets are told of a second time all the same: a sender whose
//! window is full waits for them.
//!
//! A report of more packets than fit a datagram is cut into several. Packets more than [`LATE_MAX`] below the highest of
//! their SSRC are not told of any more, neither as arrived nor as missing.
//!
//! Of copies the first arrival counts; any of them that is marked marks the packet.

use crate::cadence::Cadence;
use crate::datagram::IP_UDP_HEADERS;
use crate::feedback::unwrap_after;
use core::ops::Range;
use paceline_units::{DataSize, Ecn, RemoteTime, TimeDelta};
use paceline_wire::{ArrivalOffset, CompoundWriter, Reception, ntp};
use std::collections::VecDeque;

/// In how many reports a packet is told of.
const TOLD: usize = 2;
/// Once this many packets wait, a report goes out before its time: with those that it repeats it fills a datagram.
const REPORT_EARLY: usize = 50;
/// How far behind the highest a number may be: 16 bits wrap, so anything further back is taken for one ahead, after
/// an outage.
const LATE_MAX: u64 = 1024;
/// The most streams in one datagram.
const BLOCKS_MAX: usize = 8;

/// Gathers arrivals and writes reports.
#[derive(Debug)]
pub(crate) struct CongestionRecord {
    cadence: Cadence,
    streams: Vec<Stream>,
    /// Something came that has not been told of as often as it is to be.
    waits: bool,
    /// A report is under way: not all of it is written.
    open: bool,
    /// Packets that came since the last report began.
    fresh: usize,
    /// Size of what is written of the report under way.
    written: DataSize,
    /// The packets of a datagram, on their way into it.
    packets: Vec<Option<Reception>>,
}

#[derive(Debug)]
struct Stream {
    ssrc: u32,
    /// Unwrapped number of `packets[0]`.
    first: u64,
    /// Arrival in 1/65536 s and ECN field, up to the highest number that came; at most [`LATE_MAX`].
    packets: VecDeque<Option<(i64, Ecn)>>,
    /// Where that begins which no report covers yet, which only the last covers, and so on.
    untold: [u64; TOLD],
    /// What the report under way has still to cover.
    left: Range<u64>,
}

impl CongestionRecord {
    pub fn new(interval: TimeDelta, longest: TimeDelta, ssrcs: impl Iterator<Item = u32>) -> Self {
        let stream = |ssrc| Stream { ssrc, first: 0, packets: VecDeque::new(), untold: [0; TOLD], left: 0..0 };
        Self {
            cadence: Cadence::new(interval, longest),
            streams: ssrcs.map(stream).collect(),
            waits: false,
            open: false,
            fresh: 0,
            written: DataSize::ZERO,
            packets: Vec::with_capacity(2 * REPORT_EARLY),
        }
    }

    /// A packet came with this RTP sequence number.
    pub fn handle_packet(&mut self, now: RemoteTime, ssrc: u32, number: u16, ecn: Ecn, size: DataSize) {
        self.cadence.handle_packet(now, size);
        let Some(stream) = self.streams.iter_mut().find(|s| s.ssrc == ssrc) else { return };
        if !stream.handle_packet(ntp::units(now.as_nanos()), number, ecn) {
            return;
        }
        if !core::mem::replace(&mut self.waits, true) {
            self.cadence.begin(now);
        }
        self.fresh += 1;
        if self.fresh >= REPORT_EARLY {
            self.cadence.hurry(now); // report early rather than much at once
        }
    }

    /// Writes the next datagram of the report that is due; call until false.
    pub fn write(&mut self, now: RemoteTime, sender_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        if !self.open {
            if !self.waits || now < self.cadence.next() {
                return false;
            }
            self.streams.iter_mut().for_each(Stream::begin_report);
            self.waits = self.streams.iter().any(Stream::waits);
            self.fresh = 0;
        }
        let timestamp = ntp::units(now.as_nanos());
        self.packets.clear();
        let (mut heads, mut count) = ([(0, 0, 0); BLOCKS_MAX], 0);
        for stream in self.streams.iter_mut().filter(|s| !s.left.is_empty()).take(BLOCKS_MAX) {
            let room = writer.congestion_feedback_room(heads[..count].iter().map(|head| head.2));
            if room == 0 {
                break;
            }
            let taken = stream.take(room);
            heads[count] = (stream.ssrc, taken.start as u16, (taken.end - taken.start) as usize);
            count += 1;
            self.packets.extend(stream.receptions(taken, timestamp));
        }
        let mut rest = &self.packets[..];
        let blocks = heads.map(|(ssrc, begin, len)| {
            let packets;
            (packets, rest) = rest.split_at(len);
            (ssrc, begin, packets)
        });
        let written = writer.congestion_feedback(sender_ssrc, timestamp as u32, &blocks[..count]);
        debug_assert!(written.is_ok(), "they were made to fit");
        self.written += IP_UDP_HEADERS + DataSize::from_bytes(writer.len() as u64);
        self.open = self.streams.iter().any(|s| !s.left.is_empty());
        if !self.open {
            self.cadence.reported(now, core::mem::take(&mut self.written));
        }
        written.is_ok()
    }

    pub fn poll_timeout(&self) -> RemoteTime {
        if self.open || self.waits { self.cadence.next() } else { RemoteTime::MAX }
    }
}

impl Stream {
    fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    fn waits(&self) -> bool {
        self.untold.iter().any(|from| *from < self.end())
    }

    /// Answers whether it is the first of its number.
    fn handle_packet(&mut self, arrival: i64, number: u16, ecn: Ecn) -> bool {
        if self.packets.is_empty() {
            // One lap up, so that packets reordered before the first have a place.
            self.first = number as u64 + (1 << 16);
            self.untold = [self.first; TOLD];
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
        let packet = &mut self.packets[(sequence - self.first) as usize];
        if let Some((_, mark)) = packet {
            if ecn == Ecn::Ce {
                *mark = ecn;
            }
            return false;
        }
        *packet = Some((arrival, ecn));
        self.untold[0] = self.untold[0].min(sequence);
        true
    }

    /// The next report covers all that was told of in fewer than [`TOLD`] reports.
    fn begin_report(&mut self) {
        self.left = self.untold.into_iter().fold(self.end(), u64::min)..self.end();
        self.untold.rotate_right(1);
        self.untold[0] = self.end();
    }

    /// Takes at most `room` packets off the report under way.
    fn take(&mut self, room: usize) -> Range<u64> {
        let start = self.left.start.max(self.first);
        let end = self.left.end.min(start + room as u64);
        self.left.start = end;
        start..end
    }

    fn receptions(&self, taken: Range<u64>, timestamp: i64) -> impl Iterator<Item = Option<Reception>> {
        let place = |sequence| (sequence - self.first) as usize;
        let reception = move |(arrival, ecn)| Reception { ecn, offset: ArrivalOffset::between(arrival, timestamp) };
        self.packets.range(place(taken.start)..place(taken.end)).map(move |packet| packet.map(reception))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_wire::{Rtcp, parse_compound};

    const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
    const SIZE: DataSize = DataSize::from_bytes(1000);

    fn record() -> CongestionRecord {
        CongestionRecord::new(INTERVAL, INTERVAL, [7, 8].into_iter())
    }
    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(ms)
    }
    fn came(r: &mut CongestionRecord, ms: i64, ssrc: u32, number: u16) {
        r.handle_packet(at(ms), ssrc, number, Ecn::Ect1, SIZE);
    }

    /// Blocks of every datagram that is due: SSRC, first number, arrivals in ms; ECN of each that came.
    type Datagrams = Vec<Vec<(u32, u16, Vec<Option<i64>>)>>;
    fn reports(r: &mut CongestionRecord, now: RemoteTime) -> (Datagrams, Vec<Ecn>) {
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
    fn every_packet_is_told_of_in_two_reports() {
        let mut r = record();
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        for (ms, number) in [(0, 10), (1, 11), (2, 13), (3, 11)] {
            came(&mut r, ms, 7, number);
        }
        assert_eq!(r.poll_timeout(), at(50));
        assert_eq!(reports(&mut r, at(49)).0, Datagrams::new());
        let first = vec![Some(0), Some(1), None, Some(2)];
        assert_eq!(reports(&mut r, at(50)).0, [[(7, 10, first.clone())]]);
        // 12 comes late and 14 with it; another stream begins.
        came(&mut r, 60, 7, 12);
        came(&mut r, 61, 7, 14);
        came(&mut r, 62, 8, 65_535);
        let second = vec![Some(0), Some(1), Some(60), Some(2), Some(61)];
        assert_eq!(reports(&mut r, at(100)).0, [[(7, 10, second.clone()), (8, 65_535, vec![Some(62)])]]);
        // Since the second report there is nothing new: what it began with is told once more.
        assert_eq!(r.poll_timeout(), at(150));
        assert_eq!(reports(&mut r, at(150)).0, [[(7, 12, second[2..].to_vec()), (8, 65_535, vec![Some(62)])]]);
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        // A packet from before the first of all, and what lies between.
        came(&mut r, 200, 7, 8);
        assert_eq!(reports(&mut r, at(250)).0, [[(7, 8, [&[Some(200), None][..], &second].concat())]]);
        came(&mut r, 260, 7, 15);
        let all = [&[Some(200), None][..], &second, &[Some(260)]].concat();
        assert_eq!(reports(&mut r, at(300)).0, [[(7, 8, all)]]);
        assert_eq!(reports(&mut r, at(350)).0, [[(7, 15, vec![Some(260)])]]);
    }

    #[test]
    fn any_marked_copy_marks_and_the_first_arrival_counts() {
        let mut r = record();
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
        let mut r = record();
        came(&mut r, 0, 7, 65_500);
        came(&mut r, 1, 7, 65_500u16.wrapping_add(300));
        came(&mut r, 2, 8, 5);
        let (datagrams, _) = reports(&mut r, at(50));
        // 118 packets fit 256 bytes; 65 are left, with which the other stream goes.
        let shape: Vec<Vec<_>> =
            datagrams.iter().map(|d| d.iter().map(|(ssrc, begin, p)| (*ssrc, *begin, p.len())).collect()).collect();
        assert_eq!(shape, [vec![(7, 65_500, 118)], vec![(7, 82, 118)], vec![(7, 200, 65), (8, 5, 1)]]);
        assert_eq!((datagrams[0][0].2[0], datagrams[2][0].2[64]), (Some(0), Some(1)));
        assert!(datagrams[1][0].2.iter().all(Option::is_none));
        assert_eq!(r.poll_timeout(), at(100));
    }

    #[test]
    fn of_a_wide_gap_the_end_is_told() {
        for gap in [1000, 1023, 1024, 5000, 40_000, 60_000u16] {
            let mut r = record();
            came(&mut r, 0, 7, 65_000);
            came(&mut r, 1, 7, 65_000u16.wrapping_add(gap));
            let (datagrams, _) = reports(&mut r, at(50));
            let told: Vec<_> = datagrams.iter().flatten().flat_map(|(_, _, packets)| packets).collect();
            assert_eq!(told.len(), (gap as usize + 1).min(1024), "{gap}");
            assert_eq!(told.iter().filter(|a| a.is_some()).count(), if gap <= 1023 { 2 } else { 1 });
            assert_eq!(told.last(), Some(&&Some(1)));
            let begin = 65_000u16.wrapping_add(gap.saturating_sub(1023));
            assert_eq!(datagrams[0][0].1, begin, "{gap}");
        }
    }

    #[test]
    fn numbers_wrap_and_much_is_reported_early() {
        let mut r = record();
        let (mut told, mut datagrams, mut most) = (vec![0u8; 200_000], 0, 0);
        for n in 0..200_000u32 {
            let now = RemoteTime::from_nanos(n as i64 * 100_000); // 10,000 a second
            r.handle_packet(now, 7, n as u16, Ecn::Ect0, SIZE);
            for (_, begin, packets) in reports(&mut r, now).0.into_iter().flatten() {
                assert!(packets.iter().all(Option::is_some));
                let begin = n - (n as u16).wrapping_sub(begin) as u32;
                (begin..).take(packets.len()).for_each(|n| told[n as usize] += 1);
                datagrams += 1;
                most = most.max(packets.len());
            }
        }
        assert!(told[..199_900].iter().all(|times| *times == 2));
        assert_eq!((datagrams, most), (4000, 100), "50 packets, and 50 again");
    }

    #[test]
    fn reports_take_a_twentieth_at_most() {
        let mut r = CongestionRecord::new(INTERVAL, TimeDelta::from_millis(250), [7, 8].into_iter());
        // 1000 bytes each 80 ms are 100 kbit/s: 5 kbit/s for reports of 28 + 20 bytes and 2 to 6 packets, 52 to 60 bytes.
        let mut due = Vec::new();
        for n in 0..1000 {
            came(&mut r, 80 * n, 7, n as u16);
            while r.poll_timeout() < at(80 * (n + 1)) {
                let now = r.poll_timeout();
                due.push(now);
                assert_eq!(reports(&mut r, now).0.len(), 1);
            }
        }
        let mean = (due[500] - due[100]).as_millis_f64() / 400.0;
        assert!((83.0..=96.0).contains(&mean), "{mean} ms");
    }
}
