//! The receiving end: puts data in order, and acknowledges (RFC 5681, section 4.2; RFC 2018).

use super::TcpConfig;
use super::segment::{Flags, SACK_BLOCKS_MAX, SackBlocks, Segment};
use paceline_units::{DataSize, Time, TimeDelta};
use std::collections::VecDeque;

/// What the receiver wants known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpReceiverEvent {
    /// So many bytes were handed to the application, in order.
    Read(DataSize),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    SynAck,
    Ack,
}

/// The receiving end of a flow's connections, one after the other.
#[derive(Debug)]
pub struct TcpReceiver {
    segment: u64,
    delayed_ack: TimeDelta,
    quick_acks: u32,
    /// The connection that is open; 0: none yet.
    connection: u32,
    /// The next byte in order (RCV.NXT).
    next: u64,
    /// What arrived beyond, in order and apart: start and end.
    ranges: VecDeque<(u64, u64)>,
    /// A byte of each of the ranges that grew last, the latest first.
    recent: [u64; SACK_BLOCKS_MAX],
    recent_len: usize,
    /// Bytes in order that no ACK has covered.
    unacknowledged: u64,
    quick_left: u32,
    answer: Option<Answer>,
    deadline: Time,
    read: u64,
}

impl TcpReceiver {
    /// A receiver that waits for a connection.
    pub fn new(config: TcpConfig) -> Self {
        Self {
            segment: config.segment.as_bytes(),
            delayed_ack: config.profile.delayed_ack,
            quick_acks: config.profile.quick_acks,
            connection: 0,
            next: 0,
            ranges: VecDeque::new(),
            recent: [0; SACK_BLOCKS_MAX],
            recent_len: 0,
            unacknowledged: 0,
            quick_left: 0,
            answer: None,
            deadline: Time::MAX,
            read: 0,
        }
    }

    /// A segment came. A SYN of a later connection ends the one before it; all else of other connections is ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.flags.syn {
            self.handle_syn(segment.connection);
        } else if segment.connection == self.connection && segment.payload > 0 {
            self.handle_data(now, segment.sequence, segment.sequence + segment.payload as u64);
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if now >= self.deadline {
            self.answer = Some(Answer::Ack);
            self.deadline = Time::MAX;
        }
    }

    /// The next segment that leaves at `now`; call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let _ = now;
        let syn = matches!(self.answer.take()?, Answer::SynAck);
        self.unacknowledged = 0;
        self.deadline = Time::MAX;
        Some(Segment {
            connection: self.connection,
            sequence: if syn { 0 } else { 1 },
            acknowledgment: self.next,
            flags: Flags { syn, ack: true },
            sack: self.blocks(),
            ..Segment::default()
        })
    }

    /// The next event: at most one for each segment.
    pub fn poll_event(&mut self) -> Option<TcpReceiverEvent> {
        let read = core::mem::take(&mut self.read);
        (read > 0).then(|| TcpReceiverEvent::Read(DataSize::from_bytes(read)))
    }

    /// When [`handle_timeout`](Self::handle_timeout) is wanted next.
    pub fn poll_timeout(&self) -> Time {
        self.deadline
    }

    fn handle_syn(&mut self, connection: u32) {
        if connection < self.connection {
            return;
        }
        if connection > self.connection {
            self.connection = connection;
            self.next = 1;
            self.ranges.clear();
            self.recent_len = 0;
            self.unacknowledged = 0;
            self.quick_left = self.quick_acks;
            self.deadline = Time::MAX;
        }
        let fresh = self.next == 1 && self.ranges.is_empty();
        self.answer = Some(if fresh { Answer::SynAck } else { Answer::Ack });
    }

    fn handle_data(&mut self, now: Time, start: u64, end: u64) {
        let in_order = start <= self.next && end > self.next;
        let holes = !self.ranges.is_empty();
        if in_order {
            let before = self.next;
            self.next = end;
            self.absorb();
            self.read += self.next - before;
            self.unacknowledged += self.next - before;
        } else if start > self.next {
            self.keep(start, end);
        }
        // RFC 5681, section 4.2: at once for what is out of order, fills a gap or came before, and for every second
        // full-sized segment.
        let quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        if !in_order || holes || quick || self.unacknowledged > self.segment {
            self.answer = Some(Answer::Ack);
        } else if self.deadline == Time::MAX && self.answer.is_none() {
            self.deadline = now + self.delayed_ack;
        }
    }

    /// Takes in the ranges that are in order now.
    fn absorb(&mut self) {
        while let Some(&(start, end)) = self.ranges.front()
            && start <= self.next
        {
            self.next = self.next.max(end);
            self.ranges.pop_front();
        }
    }

    /// Keeps data that is out of order, joined with what it touches.
    fn keep(&mut self, mut start: u64, mut end: u64) {
        let from = self.ranges.partition_point(|range| range.1 < start);
        let to = from + self.ranges.iter().skip(from).take_while(|range| range.0 <= end).count();
        if from < to {
            start = start.min(self.ranges[from].0);
            end = end.max(self.ranges[to - 1].1);
            self.ranges[from] = (start, end);
            if to - from > 1 {
                self.ranges.drain(from + 1..to);
            }
        } else {
            self.ranges.insert(from, (start, end));
        }
        let mut recent = [start; SACK_BLOCKS_MAX];
        let mut len = 1;
        for &byte in &self.recent[..self.recent_len] {
            if len < SACK_BLOCKS_MAX && byte >= self.next && !(start..end).contains(&byte) {
                recent[len] = byte;
                len += 1;
            }
        }
        (self.recent, self.recent_len) = (recent, len);
    }

    /// RFC 2018, section 4: first the range that grew last, then those before it.
    fn blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.ranges.is_empty() {
            return blocks;
        }
        for &byte in &self.recent[..self.recent_len] {
            let after = self.ranges.partition_point(|range| range.0 <= byte);
            if let Some(&(start, end)) = after.checked_sub(1).and_then(|at| self.ranges.get(at))
                && byte < end
            {
                blocks.push(start, end);
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    const MSS: u64 = 1000;

    fn opened(profile: Profile) -> TcpReceiver {
        let config = TcpConfig { profile, segment: DataSize::from_bytes(MSS), ..TcpConfig::default() };
        let mut receiver = TcpReceiver::new(config);
        let flags = Flags { syn: true, ack: false };
        receiver.handle_segment(Time::ZERO, &Segment { connection: 1, flags, ..Segment::default() });
        let answer = receiver.poll_transmit(Time::ZERO).unwrap();
        assert!(answer.flags.syn && answer.flags.ack);
        assert_eq!((answer.sequence, answer.acknowledgment), (0, 1));
        receiver
    }

    /// Segment `number` comes; what is answered at once, in segments.
    fn data(receiver: &mut TcpReceiver, now: Time, number: u64) -> Option<(u64, Vec<(u64, u64)>)> {
        let sequence = 1 + number * MSS;
        let segment = Segment { connection: 1, sequence, payload: MSS as u32, ..Segment::default() };
        receiver.handle_segment(now, &segment);
        answered(receiver, now)
    }

    fn answered(receiver: &mut TcpReceiver, now: Time) -> Option<(u64, Vec<(u64, u64)>)> {
        let answer = receiver.poll_transmit(now)?;
        assert!(receiver.poll_transmit(now).is_none());
        let number = |byte: u64| (byte - 1) / MSS;
        let sack = answer.sack.iter().map(|(start, end)| (number(start), number(end))).collect();
        Some((number(answer.acknowledgment), sack))
    }

    #[test]
    fn every_second_segment_or_the_timer() {
        let mut receiver = opened(Profile::RFC);
        let now = Time::from_secs(1);
        assert_eq!(data(&mut receiver, now, 0), None);
        assert_eq!(receiver.poll_event(), Some(TcpReceiverEvent::Read(DataSize::from_bytes(MSS))));
        assert_eq!(receiver.poll_event(), None);
        assert_eq!(data(&mut receiver, now, 1), Some((2, vec![])));
        assert_eq!(receiver.poll_timeout(), Time::MAX);
        assert_eq!(data(&mut receiver, now, 2), None);
        assert_eq!(receiver.poll_timeout(), Time::from_millis(1200));
        receiver.handle_timeout(Time::from_millis(1199));
        assert_eq!(answered(&mut receiver, Time::from_millis(1199)), None);
        receiver.handle_timeout(Time::from_millis(1200));
        assert_eq!(answered(&mut receiver, Time::from_millis(1200)), Some((3, vec![])));
        assert_eq!(receiver.poll_timeout(), Time::MAX);
    }

    #[test]
    fn linux_answers_at_once_while_its_window_opens_and_then_waits_40_ms() {
        let mut receiver = opened(Profile::LINUX);
        let now = Time::from_secs(1);
        for number in 0..1_450 {
            assert_eq!(data(&mut receiver, now, number), Some((number + 1, vec![])));
        }
        assert_eq!(data(&mut receiver, now, 1_450), None);
        assert_eq!(receiver.poll_timeout(), Time::from_millis(1040));
        assert_eq!(data(&mut receiver, now, 1_451), Some((1_452, vec![])));
    }

    #[test]
    fn what_is_out_of_order_is_told_at_once_the_latest_first() {
        let mut receiver = opened(Profile::RFC);
        let now = Time::ZERO;
        assert_eq!(data(&mut receiver, now, 2), Some((0, vec![(2, 3)])));
        assert_eq!(data(&mut receiver, now, 4), Some((0, vec![(4, 5), (2, 3)])));
        assert_eq!(data(&mut receiver, now, 6), Some((0, vec![(6, 7), (4, 5), (2, 3)])));
        assert_eq!(data(&mut receiver, now, 8), Some((0, vec![(8, 9), (6, 7), (4, 5)])));
        assert_eq!(data(&mut receiver, now, 3), Some((0, vec![(2, 5), (8, 9), (6, 7)])));
        assert_eq!(data(&mut receiver, now, 3), Some((0, vec![(2, 5), (8, 9), (6, 7)])));
        assert_eq!(receiver.poll_event(), None);
        assert_eq!(data(&mut receiver, now, 0), Some((1, vec![(2, 5), (8, 9), (6, 7)])));
        assert_eq!(data(&mut receiver, now, 1), Some((5, vec![(8, 9), (6, 7)])));
        assert_eq!(receiver.poll_event(), Some(TcpReceiverEvent::Read(DataSize::from_bytes(5 * MSS))));
        assert_eq!(data(&mut receiver, now, 1), Some((5, vec![(8, 9), (6, 7)])));
    }

    #[test]
    fn only_the_latest_connection_is_heard() {
        let mut receiver = opened(Profile::RFC);
        let now = Time::ZERO;
        data(&mut receiver, now, 0);
        let syn = |connection| Segment { connection, flags: Flags { syn: true, ack: false }, ..Segment::default() };
        receiver.handle_segment(now, &syn(1));
        assert_eq!(answered(&mut receiver, now), Some((1, vec![])), "a SYN again");
        receiver.handle_segment(now, &syn(2));
        assert!(receiver.poll_transmit(now).is_some_and(|answer| answer.connection == 2 && answer.flags.syn));
        assert_eq!(data(&mut receiver, now, 1), None);
        receiver.handle_segment(now, &syn(1));
        assert_eq!(receiver.poll_transmit(now), None);
    }
}
