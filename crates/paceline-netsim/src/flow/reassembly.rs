// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reassembly: turns packets into complete frames, in the order in which a decoder needs them.
//!
//! A frame is complete when every packet from its start to its marker is present. It is rendered once all frames before
//! it were. A hole that lasts longer than [`HOLE_TIMEOUT`] is given up: rendering continues at the next key frame, and
//! the frames between are dropped because they cannot be decoded. If the picture numbers show that only FEC is missing
//! between two frames, rendering continues at once.

use paceline_units::{DataSize, RemoteTime, TimeDelta};
use std::collections::BTreeMap;

/// The longest time that a hole may block rendering. Ten requests 100 ms apart have failed by then.
pub(crate) const HOLE_TIMEOUT: TimeDelta = TimeDelta::from_millis(1000);
/// The span of sequence numbers of stored packets. A hole that falls out of this window is given up at once.
const WINDOW: u64 = 4096;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePacket {
    pub timestamp: u32,
    pub picture: u16,
    pub payload: u16,
    pub start: bool,
    pub marker: bool,
    pub key: bool,
    /// A FEC packet: it belongs to no frame, but has a sequence number.
    pub fec: bool,
}

impl FramePacket {
    /// A FEC packet.
    pub fn fec(timestamp: u32) -> Self {
        Self { timestamp, picture: 0, payload: 0, start: false, marker: false, key: false, fec: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AssembledFrame {
    pub timestamp: u32,
    pub size: DataSize,
    pub key: bool,
    /// Number of frames given up between the previous frame and this one.
    pub dropped: u16,
}

/// The packets of a video stream that are not rendered yet.
#[derive(Debug)]
pub(crate) struct Reassembly {
    /// Packets that arrived ahead of a missing one, or before a key frame, by sequence number.
    packets: BTreeMap<u64, FramePacket>,
    /// The frame that the last packet completed, if none was missing.
    complete: Option<AssembledFrame>,
    /// Everything below is rendered or given up. `None` before the start of the first key frame.
    next: Option<u64>,
    /// The incomplete frame before `next`: its first packet and its size so far.
    current: Option<(FramePacket, u64)>,
    /// One past the highest sequence number.
    end: u64,
    /// Since when `next` is missing although later packets are present.
    blocked: Option<RemoteTime>,
    last_picture: Option<u16>,
    /// One past the highest stored start of a key frame, or of one that was removed.
    key_end: u64,
    /// Rendering can only continue at a key frame: a hole was given up, or the first frame was lost.
    needs_key: bool,
    /// Packets below this that were missing when a hole was given up are no longer needed.
    given_up: u64,
    /// The time at which a key frame was last requested.
    key_requested: Option<RemoteTime>,
}

impl Reassembly {
    pub fn new() -> Self {
        Self {
            packets: BTreeMap::new(),
            complete: None,
            next: None,
            current: None,
            end: 0,
            blocked: None,
            last_picture: None,
            key_end: 0,
            needs_key: false,
            given_up: 0,
            key_requested: None,
        }
    }

    /// Adds a packet. Returns whether [`poll`](Self::poll) may return a frame now: not after a packet in order within a frame, one that
    /// is no longer needed, and one that cannot be used before a key frame.
    #[inline]
    pub fn insert(&mut self, now: RemoteTime, sequence: u64, packet: FramePacket) -> bool {
        let next = match self.next {
            Some(next) => next,
            None if packet.start && packet.key => *self.next.insert(sequence),
            None => {
                // Stored, because the start of the frame may arrive later.
                self.needs_key = true;
                self.store(sequence, packet);
                return false;
            }
        };
        if sequence < next {
            return false;
        }
        if sequence == next && self.packets.is_empty() && !self.needs_key && self.complete.is_none() {
            (self.next, self.end) = (Some(sequence + 1), self.end.max(sequence + 1));
            self.complete = self.append(packet);
            return self.complete.is_some();
        }
        if sequence >= next + WINDOW {
            self.skip_to(sequence);
        }
        self.store(sequence, packet);
        if sequence != self.next.unwrap_or(sequence) && self.blocked.is_none() {
            self.blocked = Some(now);
        }
        true
    }

    /// Returns the next frame to render, if one is complete.
    #[inline]
    pub fn poll(&mut self, now: RemoteTime) -> Option<AssembledFrame> {
        if let Some(frame) = self.complete.take() {
            return Some(frame);
        }
        loop {
            if self.packets.is_empty() {
                return None;
            }
            if self.needs_key && !self.seek_key() {
                return None;
            }
            let next = self.next?;
            let Some(packet) = self.packets.remove(&next) else {
                if self.blocked.is_some_and(|since| now - since >= HOLE_TIMEOUT) {
                    self.needs_key = true;
                    self.given_up = self.end;
                    self.current = None;
                    continue;
                }
                if let Some(start) = self.next_start(next) {
                    self.remove_below(start);
                    self.next = Some(start);
                    continue;
                }
                return None;
            };
            self.next = Some(next + 1);
            self.blocked = (next + 1 < self.end && !self.packets.contains_key(&(next + 1))).then_some(now);
            if let Some(frame) = self.append(packet) {
                return Some(frame);
            }
        }
    }

    /// Appends the next packet in order, and returns the frame if this completes one.
    fn append(&mut self, packet: FramePacket) -> Option<AssembledFrame> {
        let (first, bytes) = match self.current {
            _ if packet.start => (packet, packet.payload as u64),
            Some((first, bytes)) => (first, bytes + packet.payload as u64),
            None => return None, // the end of a frame whose start was given up
        };
        if !packet.marker {
            self.current = Some((first, bytes));
            return None;
        }
        self.current = None;
        let dropped = self.last_picture.map_or(0, |last| (first.picture.wrapping_sub(last) & 0x7FFF).saturating_sub(1));
        self.last_picture = Some(first.picture);
        let (timestamp, key) = (first.timestamp, first.key);
        Some(AssembledFrame { timestamp, size: DataSize::from_bytes(bytes), key, dropped })
    }

    /// Returns whether a key frame must be requested now: at once when a hole is given up, then every [`HOLE_TIMEOUT`].
    pub fn poll_key_request(&mut self, now: RemoteTime) -> bool {
        let due = self.needs_key && self.key_requested.is_none_or(|at| now - at >= HOLE_TIMEOUT);
        if due {
            self.key_requested = Some(now);
        }
        due
    }

    /// Returns the sequence number below which packets are no longer needed.
    pub fn needed_from(&self) -> u64 {
        self.next.unwrap_or(0).max(self.given_up)
    }

    /// Returns the time at which [`poll`](Self::poll) or [`poll_key_request`](Self::poll_key_request) must be called.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        match (self.needs_key, self.key_requested, self.blocked) {
            (true, Some(at), _) => Some(at + HOLE_TIMEOUT),
            (true, None, _) => Some(RemoteTime::from_nanos(i64::MIN)),
            (false, _, Some(since)) => Some(since + HOLE_TIMEOUT),
            _ => None,
        }
    }

    fn store(&mut self, sequence: u64, packet: FramePacket) {
        if packet.start && packet.key {
            self.key_end = self.key_end.max(sequence + 1);
        }
        self.packets.insert(sequence, packet);
        self.end = self.end.max(sequence + 1);
        if self.next.is_none() {
            self.remove_below(self.end.saturating_sub(WINDOW));
        }
    }

    fn remove_below(&mut self, sequence: u64) {
        while self.packets.first_key_value().is_some_and(|(first, _)| *first < sequence) {
            self.packets.pop_first();
        }
    }

    /// Returns the sequence number of the first packet of the next frame, if only FEC is missing before it.
    fn next_start(&self, next: u64) -> Option<u64> {
        let (last, None) = (self.last_picture?, self.current) else { return None };
        let (sequence, packet) = self.packets.range(next + 1..).find(|(_, packet)| !packet.fec)?;
        (packet.start && packet.picture == last.wrapping_add(1) & 0x7FFF).then_some(*sequence)
    }

    /// Skips to the first stored start of a key frame. Returns whether there is one.
    fn seek_key(&mut self) -> bool {
        let from = self.next.unwrap_or(0);
        if self.key_end <= from {
            // Most packets need no search.
            debug_assert!(!self.packets.range(from..).any(|(_, p)| p.start && p.key));
            return false;
        }
        let found = self.packets.range(from..).find(|(_, p)| p.start && p.key);
        let Some((&sequence, _)) = found else { return false };
        self.remove_below(sequence);
        self.next = Some(sequence);
        (self.needs_key, self.key_requested, self.blocked) = (false, None, None);
        true
    }

    /// Gives up all missing packets that no longer fit into the window with `sequence`.
    fn skip_to(&mut self, sequence: u64) {
        let next = sequence.saturating_sub(WINDOW / 2);
        self.needs_key = true;
        self.given_up = sequence;
        self.current = None;
        self.next = Some(next);
        self.remove_below(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of two packets; frame `n` has sequences 2n and 2n + 1.
    fn packet(sequence: u64, key: bool) -> FramePacket {
        let frame = sequence / 2;
        FramePacket {
            timestamp: frame as u32 * 3000,
            picture: (frame as u16) & 0x7FFF,
            payload: 100,
            start: sequence.is_multiple_of(2),
            marker: sequence % 2 == 1,
            key: sequence.is_multiple_of(2) && key,
            fec: false,
        }
    }

    fn feed(r: &mut Reassembly, at_ms: i64, sequence: u64, key: bool) -> Vec<(u32, u16)> {
        let now = RemoteTime::from_millis(at_ms);
        r.insert(now, sequence, packet(sequence, key));
        core::iter::from_fn(|| r.poll(now)).map(|f| (f.timestamp / 3000, f.dropped)).collect()
    }

    #[test]
    fn a_hole_blocks_rendering_until_it_is_filled() {
        let mut r = Reassembly::new();
        assert_eq!(feed(&mut r, 0, 0, true), []);
        assert_eq!(feed(&mut r, 1, 1, true), [(0, 0)]);
        assert_eq!(feed(&mut r, 2, 2, false), []);
        assert_eq!(feed(&mut r, 3, 4, false), []);
        assert_eq!(feed(&mut r, 4, 5, false), [], "frame 2 is complete, frame 1 is not");
        assert_eq!(r.poll_timeout(), Some(RemoteTime::from_millis(1003)));
        assert_eq!(feed(&mut r, 90, 3, false), [(1, 0), (2, 0)]);
        assert_eq!(r.poll_timeout(), None);
        assert!(!r.insert(RemoteTime::from_millis(91), 3, packet(3, false)), "a late duplicate");
    }

    #[test]
    fn rendering_continues_at_a_key_frame_after_a_hole_is_given_up() {
        let mut r = Reassembly::new();
        feed(&mut r, 0, 0, true);
        feed(&mut r, 0, 1, true);
        feed(&mut r, 10, 3, false); // 2 is lost
        for s in 4..10 {
            assert_eq!(feed(&mut r, 20, s, false), []);
        }
        let late = RemoteTime::from_millis(1010);
        assert_eq!(r.poll(late), None);
        assert!(r.poll_timeout().unwrap() <= late, "the key frame is requested at once");
        assert!(r.poll_key_request(late) && !r.poll_key_request(late));
        assert_eq!(r.poll_timeout(), Some(RemoteTime::from_millis(2010)));
        assert_eq!(feed(&mut r, 1020, 10, false), []);
        assert_eq!(feed(&mut r, 1060, 12, true), []);
        assert_eq!(feed(&mut r, 1061, 13, true), [(6, 5)], "frames 1 to 5 are dropped");
        assert_eq!(feed(&mut r, 1062, 14, false), []);
        assert_eq!(feed(&mut r, 1063, 15, false), [(7, 0)]);
    }

    #[test]
    fn nothing_is_rendered_before_the_first_key_frame() {
        let mut r = Reassembly::new();
        assert_eq!(r.poll_timeout(), None);
        assert_eq!(feed(&mut r, 0, 1, false), [], "the first frame's start is lost");
        assert_eq!(feed(&mut r, 33, 2, false), []);
        assert!(r.poll_timeout().unwrap() <= RemoteTime::ZERO && r.poll_key_request(RemoteTime::from_millis(33)));
        assert_eq!(feed(&mut r, 34, 3, false), []);
        assert_eq!(feed(&mut r, 66, 4, true), []);
        assert_eq!(feed(&mut r, 67, 5, true), [(2, 0)]);
        assert_eq!(r.poll_timeout(), None);
    }

    #[test]
    fn lost_fec_does_not_block_rendering() {
        let mut r = Reassembly::new();
        let mut at = 0;
        // Frames of two packets and two of FEC: frame n has sequences 4n and 4n + 1.
        let mut feed = |r: &mut Reassembly, sequence: u64| {
            let (frame, place) = (sequence / 4, sequence % 4);
            let media = packet(2 * frame + place, frame == 0);
            let fec = FramePacket::fec(media.timestamp);
            at += 1;
            let now = RemoteTime::from_millis(at);
            r.insert(now, sequence, if place < 2 { media } else { fec });
            core::iter::from_fn(|| r.poll(now)).map(|f| (f.timestamp / 3000, f.size.as_bytes())).collect::<Vec<_>>()
        };
        for s in [0, 1, 2, 3] {
            assert_eq!(feed(&mut r, s), if s == 1 { vec![(0, 200)] } else { vec![] });
        }
        assert_eq!([4, 5, 7].map(|s| feed(&mut r, s).len()), [0, 1, 0], "7 arrived, 6 did not");
        assert_eq!([8, 9].map(|s| feed(&mut r, s).len()), [0, 1], "6 is not waited for");
        assert_eq!(r.poll_timeout(), None);
        assert_eq!([12, 13].map(|s| feed(&mut r, s).len()), [0, 1], "nor are 10 and 11");
        assert_eq!([17, 20, 21].map(|s| feed(&mut r, s).len()), [0, 0, 0], "16 belongs to a frame");
        assert_eq!(feed(&mut r, 16), [(4, 200), (5, 200)]);
        assert_eq!([28, 29].map(|s| feed(&mut r, s).len()), [0, 0], "frame 6 is missing");
        assert!(r.poll_timeout().is_some());
    }

    #[test]
    fn the_first_packets_may_be_out_of_order() {
        let mut r = Reassembly::new();
        assert_eq!(feed(&mut r, 0, 1, true), []);
        assert_eq!(feed(&mut r, 1, 0, true), [(0, 0)]);
    }

    #[test]
    fn rendering_continues_after_a_gap_wider_than_the_window() {
        let mut r = Reassembly::new();
        feed(&mut r, 0, 0, true);
        feed(&mut r, 0, 1, true);
        assert_eq!(feed(&mut r, 1, 20_000, true), []);
        assert_eq!(feed(&mut r, 1, 20_001, true), [(10_000, 9_999)]);
    }
}
