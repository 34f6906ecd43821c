// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving endpoint: reorders data and acknowledges it (RFC 5681, section 4.2; RFC 2018).

use super::TcpConfig;
use super::ecn::MarkEcho;
use super::segment::{Flags, SACK_BLOCKS_MAX, SackBlocks, Segment};
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::collections::VecDeque;

/// An event of a [`TcpReceiver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpReceiverEvent {
    /// This much data was delivered to the application, in order.
    Read(DataSize),
}

/// A segment that is ready to be sent.
#[derive(Clone, Copy, Debug)]
enum Reply {
    SynAck,
    Ack,
}

/// The receiving endpoint of a flow. It accepts one connection after the other.
#[derive(Debug)]
pub struct TcpReceiver {
    segment: u64,
    delayed_ack: TimeDelta,
    quick_acks: u32,
    /// The open connection; 0 if there was none yet.
    connection: u32,
    /// The next byte in order (RCV.NXT).
    next: u64,
    /// Received ranges beyond `next`, ascending and disjoint: start and end.
    ranges: VecDeque<(u64, u64)>,
    /// A byte of each of the ranges that grew last, the latest first.
    recent: [u64; SACK_BLOCKS_MAX],
    recent_len: usize,
    /// Bytes in order that were not acknowledged yet.
    unacknowledged: u64,
    /// Remaining segments that are acknowledged at once.
    quick_left: u32,
    reply: Option<Reply>,
    /// The time at which a delayed ACK is due.
    deadline: Option<Time>,
    /// Bytes delivered since the last event.
    read: u64,
    config: TcpConfig,
    marks: MarkEcho,
}

impl TcpReceiver {
    /// Creates a receiver that waits for a connection.
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
            reply: None,
            deadline: None,
            read: 0,
            config,
            marks: MarkEcho::new(config.ecn),
        }
    }

    /// Handles an incoming segment. A SYN of a later connection ends the current one. Other segments of other
    /// connections are ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.handle_packet(now, segment, Ecn::NotEct);
    }

    /// Handles an incoming segment whose packet has this ECN field.
    pub fn handle_packet(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if segment.flags.syn {
            self.handle_syn(segment.connection);
        } else if segment.connection == self.connection && segment.payload > 0 {
            let changed = self.marks.handle_data(segment, ecn);
            self.handle_data(now, segment.sequence, segment.sequence + segment.payload as u64);
            if changed {
                self.reply = Some(Reply::Ack);
            }
        }
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.reply = Some(Reply::Ack);
            self.deadline = None;
        }
    }

    /// Returns the next segment to send at `now`. Call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let _ = now;
        let syn = matches!(self.reply.take()?, Reply::SynAck);
        self.unacknowledged = 0;
        self.deadline = None;
        let mut ack = Segment {
            connection: self.connection,
            sequence: if syn { 0 } else { 1 },
            acknowledgment: self.next,
            flags: Flags { syn, ack: true },
            sack: self.blocks(),
            ..Segment::default()
        };
        self.marks.write(&mut ack);
        Some(ack)
    }

    /// Returns the next event; there is at most one per segment.
    pub fn poll_event(&mut self) -> Option<TcpReceiverEvent> {
        let read = core::mem::take(&mut self.read);
        (read > 0).then(|| TcpReceiverEvent::Read(DataSize::from_bytes(read)))
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called; `None` if there is none.
    pub fn poll_timeout(&self) -> Option<Time> {
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
            self.marks = MarkEcho::new(self.config.ecn);
            self.deadline = None;
        }
        let fresh = self.next == 1 && self.ranges.is_empty();
        self.reply = Some(if fresh { Reply::SynAck } else { Reply::Ack });
    }

    fn handle_data(&mut self, now: Time, start: u64, end: u64) {
        let in_order = start <= self.next && end > self.next;
        let holes = !self.ranges.is_empty();
        if in_order {
            let before = self.next;
            self.next = end;
            self.merge_ranges();
            self.read += self.next - before;
            self.unacknowledged += self.next - before;
        } else if start > self.next {
            self.insert_range(start, end);
        }
        // RFC 5681, section 4.2: an immediate ACK for data that is out of order, fills a gap or is a duplicate, and for
        // every second full-sized segment.
        let quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        if !in_order || holes || quick || self.unacknowledged > self.segment {
            self.reply = Some(Reply::Ack);
        } else if self.deadline.is_none() && self.reply.is_none() {
            self.deadline = Some(now + self.delayed_ack);
        }
    }

    /// Removes the ranges that are in order now, and advances `next` past them.
    fn merge_ranges(&mut self) {
        while let Some(&(start, end)) = self.ranges.front()
            && start <= self.next
        {
            self.next = self.next.max(end);
            self.ranges.pop_front();
        }
    }

    /// Adds a range that is out of order, and merges it with adjacent ranges.
    fn insert_range(&mut self, mut start: u64, mut end: u64) {
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

    /// Returns the SACK blocks: first the range that grew last, then the ones before it (RFC 2018, section 4).
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
    use crate::flow::tcp::Profile;

    const MSS: u64 = 1000;

    fn opened(profile: Profile) -> TcpReceiver {
        let config = TcpConfig { profile, segment: DataSize::from_bytes(MSS), ..TcpConfig::default() };
        let mut receiver = TcpReceiver::new(config);
        let flags = Flags { syn: true, ack: false };
        receiver.handle_segment(Time::ZERO, &Segment { connection: 1, flags, ..Segment::default() });
        let reply = receiver.poll_transmit(Time::ZERO).unwrap();
        assert!(reply.flags.syn && reply.flags.ack);
        assert_eq!((reply.sequence, reply.acknowledgment), (0, 1));
        receiver
    }

    /// Receives segment `number`. Returns the immediate reply, in segments.
    fn data(receiver: &mut TcpReceiver, now: Time, number: u64) -> Option<(u64, Vec<(u64, u64)>)> {
        let sequence = 1 + number * MSS;
        let segment = Segment { connection: 1, sequence, payload: MSS as u32, ..Segment::default() };
        receiver.handle_segment(now, &segment);
        reply_at(receiver, now)
    }

    fn reply_at(receiver: &mut TcpReceiver, now: Time) -> Option<(u64, Vec<(u64, u64)>)> {
        let reply = receiver.poll_transmit(now)?;
        assert!(receiver.poll_transmit(now).is_none());
        let number = |byte: u64| (byte - 1) / MSS;
        let sack = reply.sack.iter().map(|(start, end)| (number(start), number(end))).collect();
        Some((number(reply.acknowledgment), sack))
    }

    #[test]
    fn acknowledges_every_second_segment_or_when_the_timer_expires() {
        let mut receiver = opened(Profile::RFC);
        let now = Time::from_secs(1);
        assert_eq!(data(&mut receiver, now, 0), None);
        assert_eq!(receiver.poll_event(), Some(TcpReceiverEvent::Read(DataSize::from_bytes(MSS))));
        assert_eq!(receiver.poll_event(), None);
        assert_eq!(data(&mut receiver, now, 1), Some((2, vec![])));
        assert_eq!(receiver.poll_timeout(), None);
        assert_eq!(data(&mut receiver, now, 2), None);
        assert_eq!(receiver.poll_timeout(), Some(Time::from_millis(1200)));
        receiver.handle_timeout(Time::from_millis(1199));
        assert_eq!(reply_at(&mut receiver, Time::from_millis(1199)), None);
        receiver.handle_timeout(Time::from_millis(1200));
        assert_eq!(reply_at(&mut receiver, Time::from_millis(1200)), Some((3, vec![])));
        assert_eq!(receiver.poll_timeout(), None);
    }

    #[test]
    fn linux_sends_quick_acks_first_and_then_delays_them_by_40_ms() {
        let mut receiver = opened(Profile::LINUX);
        let now = Time::from_secs(1);
        for number in 0..1_450 {
            assert_eq!(data(&mut receiver, now, number), Some((number + 1, vec![])));
        }
        assert_eq!(data(&mut receiver, now, 1_450), None);
        assert_eq!(receiver.poll_timeout(), Some(Time::from_millis(1040)));
        assert_eq!(data(&mut receiver, now, 1_451), Some((1_452, vec![])));
    }

    #[test]
    fn out_of_order_data_is_sacked_at_once_the_latest_range_first() {
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
    fn segments_of_earlier_connections_are_ignored() {
        let mut receiver = opened(Profile::RFC);
        let now = Time::ZERO;
        data(&mut receiver, now, 0);
        let syn = |connection| Segment { connection, flags: Flags { syn: true, ack: false }, ..Segment::default() };
        receiver.handle_segment(now, &syn(1));
        assert_eq!(reply_at(&mut receiver, now), Some((1, vec![])), "a repeated SYN");
        receiver.handle_segment(now, &syn(2));
        assert!(receiver.poll_transmit(now).is_some_and(|reply| reply.connection == 2 && reply.flags.syn));
        assert_eq!(data(&mut receiver, now, 1), None);
        receiver.handle_segment(now, &syn(1));
        assert_eq!(receiver.poll_transmit(now), None);
    }
}
