//! Packets back to frames, in order, as a decoder needs them.
//!
//! A frame is whole when every packet from its start to its marker is there, and rendered when all before it were. A
//! hole that stays open longer than [`PATIENCE`] is given up: rendering goes on at the next key frame, and what lies
//! between is dropped, because nothing there can be decoded. Between the end of a frame and the start of the next, as
//! the picture numbers say, only FEC can be missing, and nobody waits for that.

use paceline_units::{DataSize, RemoteTime, TimeDelta};

/// How long a hole may hold up rendering. Ten requests 100 ms apart have gone unanswered by then.
pub(crate) const PATIENCE: TimeDelta = TimeDelta::from_millis(1000);
/// Packets held, by sequence number: a hole this old is given up at once.
const WINDOW: u64 = 4096;

/// What reassembly needs to know of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub timestamp: u32,
    pub picture: u16,
    pub payload: u16,
    pub start: bool,
    pub marker: bool,
    pub key: bool,
    /// No piece of a frame, but FEC, which has a place in the sequence all the same.
    pub fec: bool,
}

/// A frame that is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub timestamp: u32,
    pub size: DataSize,
    pub key: bool,
    /// Frames given up between the one rendered before and this one.
    pub dropped: u16,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    pieces: Vec<Option<(u64, Piece)>>,
    /// Everything below is rendered or given up; `None` before the first key frame's start.
    next: Option<u64>,
    /// The frame being gathered, from its start to `next`.
    gathering: Option<(Piece, u64)>,
    /// One past the highest sequence seen.
    end: u64,
    /// Since when `next` is missing although later packets are there.
    blocked: Option<RemoteTime>,
    last_picture: Option<u16>,
    /// A hole was given up, or the first frame was lost: only a key frame helps.
    needs_key: bool,
    /// What was missing below this when a hole was given up need not come any more.
    given_up: u64,
    asked_for_key: Option<RemoteTime>,
}

impl Reassembly {
    pub fn new() -> Self {
        Self {
            pieces: vec![None; WINDOW as usize],
            next: None,
            gathering: None,
            end: 0,
            blocked: None,
            last_picture: None,
            needs_key: false,
            given_up: 0,
            asked_for_key: None,
        }
    }

    /// A packet came, first or again. Answers false if it is of no use any more.
    #[inline]
    pub fn insert(&mut self, now: RemoteTime, sequence: u64, piece: Piece) -> bool {
        let next = match self.next {
            Some(next) => next,
            None if piece.start && piece.key => *self.next.insert(sequence),
            None => {
                // Kept: it may have overtaken the start.
                self.needs_key = true;
                self.keep(sequence, piece);
                return false;
            }
        };
        if sequence < next || sequence >= next + WINDOW && !self.skip_to(sequence) {
            return false;
        }
        self.keep(sequence, piece);
        if sequence != self.next.unwrap_or(sequence) && self.blocked.is_none() {
            self.blocked = Some(now);
        }
        true
    }

    /// The next frame to render, if one is whole.
    #[inline]
    pub fn poll(&mut self, now: RemoteTime) -> Option<Rendered> {
        loop {
            if self.needs_key && !self.seek_key() {
                return None;
            }
            let next = self.next?;
            let Some(piece) = self.get(next) else {
                if self.blocked.is_some_and(|since| now - since >= PATIENCE) {
                    self.needs_key = true;
                    self.given_up = self.end;
                    self.gathering = None;
                    continue;
                }
                if let Some(start) = self.next_start(next) {
                    self.next = Some(start);
                    continue;
                }
                return None;
            };
            self.pieces[(next % WINDOW) as usize] = None;
            self.next = Some(next + 1);
            self.blocked = (next + 1 < self.end && self.get(next + 1).is_none()).then_some(now);
            let (first, bytes) = match self.gathering {
                _ if piece.start => (piece, piece.payload as u64),
                Some((first, bytes)) => (first, bytes + piece.payload as u64),
                None => continue, // the tail of a frame whose start was given up
            };
            if !piece.marker {
                self.gathering = Some((first, bytes));
                continue;
            }
            self.gathering = None;
            let dropped =
                self.last_picture.map_or(0, |last| (first.picture.wrapping_sub(last) & 0x7FFF).saturating_sub(1));
            self.last_picture = Some(first.picture);
            let (timestamp, key) = (first.timestamp, first.key);
            return Some(Rendered { timestamp, size: DataSize::from_bytes(bytes), key, dropped });
        }
    }

    /// Whether the sender must be asked for a key frame now: at once when a hole is given up, then every
    /// [`PATIENCE`].
    pub fn poll_key_request(&mut self, now: RemoteTime) -> bool {
        let due = self.needs_key && self.asked_for_key.is_none_or(|at| now - at >= PATIENCE);
        if due {
            self.asked_for_key = Some(now);
        }
        due
    }

    /// Packets below this are of no use any more.
    pub fn wanted_from(&self) -> u64 {
        self.next.unwrap_or(0).max(self.given_up)
    }

    /// When [`poll`](Self::poll) or [`poll_key_request`](Self::poll_key_request) has something to do.
    pub fn poll_timeout(&self) -> RemoteTime {
        match (self.needs_key, self.asked_for_key, self.blocked) {
            (true, Some(at), _) => at + PATIENCE,
            (true, None, _) => RemoteTime::from_nanos(i64::MIN),
            (false, _, Some(since)) => since + PATIENCE,
            _ => RemoteTime::MAX,
        }
    }

    fn keep(&mut self, sequence: u64, piece: Piece) {
        self.pieces[(sequence % WINDOW) as usize] = Some((sequence, piece));
        self.end = self.end.max(sequence + 1);
    }

    fn get(&self, sequence: u64) -> Option<Piece> {
        self.pieces[(sequence % WINDOW) as usize].filter(|(s, _)| *s == sequence).map(|(_, p)| p)
    }

    /// Where the next frame begins, if nothing of a frame is missing at `next`.
    fn next_start(&self, next: u64) -> Option<u64> {
        let (last, None) = (self.last_picture?, self.gathering) else { return None };
        let there = |s| self.get(s).filter(|piece| !piece.fec).map(|piece| (s, piece));
        let (sequence, piece) = (next + 1..self.end).find_map(there)?;
        (piece.start && piece.picture == last.wrapping_add(1) & 0x7FFF).then_some(sequence)
    }

    /// Jumps to the first key frame start that is there.
    fn seek_key(&mut self) -> bool {
        let from = self.next.unwrap_or(self.end.saturating_sub(WINDOW));
        let found = (from..self.end).find(|s| self.get(*s).is_some_and(|p| p.start && p.key));
        if let Some(sequence) = found {
            self.next = Some(sequence);
            (self.needs_key, self.asked_for_key, self.blocked) = (false, None, None);
        }
        found.is_some()
    }

    /// The window is full: what is missing is given up, whatever its age.
    fn skip_to(&mut self, sequence: u64) -> bool {
        self.needs_key = true;
        self.given_up = sequence;
        self.gathering = None;
        self.next = Some(sequence.saturating_sub(WINDOW / 2));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of two packets; frame `n` has sequences 2n and 2n + 1.
    fn piece(sequence: u64, key: bool) -> Piece {
        let frame = sequence / 2;
        Piece {
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
        r.insert(now, sequence, piece(sequence, key));
        core::iter::from_fn(|| r.poll(now)).map(|f| (f.timestamp / 3000, f.dropped)).collect()
    }

    #[test]
    fn holes_are_waited_for_then_filled() {
        let mut r = Reassembly::new();
        assert_eq!(feed(&mut r, 0, 0, true), []);
        assert_eq!(feed(&mut r, 1, 1, true), [(0, 0)]);
        assert_eq!(feed(&mut r, 2, 2, false), []);
        assert_eq!(feed(&mut r, 3, 4, false), []);
        assert_eq!(feed(&mut r, 4, 5, false), [], "frame 2 is whole, frame 1 is not");
        assert_eq!(r.poll_timeout(), RemoteTime::from_millis(1003));
        assert_eq!(feed(&mut r, 90, 3, false), [(1, 0), (2, 0)]);
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        assert!(!r.insert(RemoteTime::from_millis(91), 3, piece(3, false)), "again, and too late");
    }

    #[test]
    fn a_hole_given_up_waits_for_a_key_frame() {
        let mut r = Reassembly::new();
        feed(&mut r, 0, 0, true);
        feed(&mut r, 0, 1, true);
        feed(&mut r, 10, 3, false); // 2 is lost
        for s in 4..10 {
            assert_eq!(feed(&mut r, 20, s, false), []);
        }
        let late = RemoteTime::from_millis(1010);
        assert_eq!(r.poll(late), None);
        assert!(r.poll_timeout() <= late, "the key frame is wanted now");
        assert!(r.poll_key_request(late) && !r.poll_key_request(late));
        assert_eq!(r.poll_timeout(), RemoteTime::from_millis(2010));
        assert_eq!(feed(&mut r, 1020, 10, false), []);
        assert_eq!(feed(&mut r, 1060, 12, true), []);
        assert_eq!(feed(&mut r, 1061, 13, true), [(6, 5)], "frames 1 to 5 are dropped");
        assert_eq!(feed(&mut r, 1062, 14, false), []);
        assert_eq!(feed(&mut r, 1063, 15, false), [(7, 0)]);
    }

    #[test]
    fn nothing_is_shown_before_the_first_key_frame() {
        let mut r = Reassembly::new();
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        assert_eq!(feed(&mut r, 0, 1, false), [], "the first frame's start is lost");
        assert_eq!(feed(&mut r, 33, 2, false), []);
        assert!(r.poll_timeout() <= RemoteTime::ZERO && r.poll_key_request(RemoteTime::from_millis(33)));
        assert_eq!(feed(&mut r, 34, 3, false), []);
        assert_eq!(feed(&mut r, 66, 4, true), []);
        assert_eq!(feed(&mut r, 67, 5, true), [(2, 0)]);
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
    }

    #[test]
    fn lost_fec_holds_nothing_up() {
        let mut r = Reassembly::new();
        let mut at = 0;
        // Frames of two packets and two of FEC: frame n has sequences 4n and 4n + 1.
        let mut feed = |r: &mut Reassembly, sequence: u64| {
            let (frame, place) = (sequence / 4, sequence % 4);
            let media = piece(2 * frame + place, frame == 0);
            let fec = Piece { payload: 0, start: false, marker: false, key: false, picture: 0, fec: true, ..media };
            at += 1;
            let now = RemoteTime::from_millis(at);
            r.insert(now, sequence, if place < 2 { media } else { fec });
            core::iter::from_fn(|| r.poll(now)).map(|f| (f.timestamp / 3000, f.size.as_bytes())).collect::<Vec<_>>()
        };
        for s in [0, 1, 2, 3] {
            assert_eq!(feed(&mut r, s), if s == 1 { vec![(0, 200)] } else { vec![] });
        }
        assert_eq!([4, 5, 7].map(|s| feed(&mut r, s).len()), [0, 1, 0], "7 came, 6 did not");
        assert_eq!([8, 9].map(|s| feed(&mut r, s).len()), [0, 1], "nobody waits for 6");
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        assert_eq!([12, 13].map(|s| feed(&mut r, s).len()), [0, 1], "nor for 10 and 11");
        assert_eq!([17, 20, 21].map(|s| feed(&mut r, s).len()), [0, 0, 0], "16 is of a frame");
        assert_eq!(feed(&mut r, 16), [(4, 200), (5, 200)]);
        assert_eq!([28, 29].map(|s| feed(&mut r, s).len()), [0, 0], "frame 6 is missing");
        assert!(r.poll_timeout() < RemoteTime::MAX);
    }

    #[test]
    fn the_first_packets_may_be_out_of_order() {
        let mut r = Reassembly::new();
        assert_eq!(feed(&mut r, 0, 1, true), []);
        assert_eq!(feed(&mut r, 1, 0, true), [(0, 0)]);
    }

    #[test]
    fn a_gap_wider_than_the_window_does_not_stop_it() {
        let mut r = Reassembly::new();
        feed(&mut r, 0, 0, true);
        feed(&mut r, 0, 1, true);
        assert_eq!(feed(&mut r, 1, 20_000, true), []);
        assert_eq!(feed(&mut r, 1, 20_001, true), [(10_000, 9_999)]);
    }
}
