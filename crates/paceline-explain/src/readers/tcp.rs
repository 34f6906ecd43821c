// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media in TCP streams: segments to messages.
//!
//! The framing of a stream is recognised by its content, because ports vary and a capture may begin in the middle of a stream. After a
//! gap, or bytes of another kind, it is recognised again, so nothing but the messages in the gap is missing.

use super::layers::Route;
use super::layers::{STUN_COOKIE, Segment, big, in_turn};
use paceline_units::{Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Streams at most; the one that was silent for longest makes room.
const STREAMS_MAX: usize = 1024;
/// Bytes that a stream keeps beyond a gap at most: a round trip of 0.5 s at 16 Mbit/s. Assumed.
const BEYOND_MAX: u64 = 1 << 20;
/// Bytes that all streams keep at most. Assumed.
const KEPT_MAX: usize = 64 << 20;
/// A gap that lasts longer was not captured: a third transmission comes after 1 + 2 s (RFC 6298, sections 2.1 and 5.5).
const GAP_MAX: TimeDelta = TimeDelta::from_secs(3);
/// Bytes in which a framing is looked for at a time. Assumed: some packets of each stream of a call.
const SEARCHED: usize = 16 << 10;
/// A stream without a framing for so many bytes is none of media. Assumed.
const FOREIGN: usize = 256 << 10;
/// Messages in which the proof of a framing must be.
const CHAIN: usize = 32;
/// Sequence numbers of packets that prove a framing rise by no more than this. Assumed.
const STEP_MAX: u16 = 16;
/// Ports of STUN and TURN, in clear and with TLS (RFC 8656, section 21).
const TURN_PORTS: [u16; 2] = [3478, 5349];

/// Names of streams with TLS: to a port of TURN, and to another one, such as 443.
pub(super) const TURN_OVER_TLS: &str = "TURN over TLS";
/// See [`TURN_OVER_TLS`].
pub(super) const TLS: &str = "TLS";

/// How messages are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// A length of two bytes (RFC 4571): ICE over TCP (RFC 6544).
    Length,
    /// STUN, and ChannelData with padding to words (RFC 8656, section 12.5).
    Turn,
    /// `$`, channel and length between texts of RTSP (RFC 2326, section 10.12).
    Interleaved,
    /// Records of TLS (RFC 8446, section 5.1).
    Tls,
}

const FRAMINGS: [Framing; 4] = [Framing::Length, Framing::Turn, Framing::Interleaved, Framing::Tls];

/// What bytes begin with.
enum Begin<'a> {
    /// A message of this size with its framing, and what the capture has of its content.
    Message(usize, &'a [u8]),
    /// The beginning of a message.
    Part,
    /// The size of the message is not in the capture, or not yet.
    Unsized,
    /// No message of this framing.
    Other,
}

/// Bytes of a stream from a place on, of which the capture may lack some.
#[derive(Clone, Copy)]
struct View<'a> {
    bytes: &'a [u8],
    /// What the capture lacks, in order.
    holes: &'a [Range<usize>],
    at: usize,
}

impl<'a> View<'a> {
    fn len(self) -> usize {
        self.bytes.len() - self.at
    }

    fn from(self, size: usize) -> Self {
        Self { at: self.at + size, ..self }
    }

    /// Returns the first hole that ends after the place.
    fn hole(self) -> Option<&'a Range<usize>> {
        self.holes.get(self.holes.partition_point(|hole| hole.end <= self.at))
    }

    /// Returns what the capture has up to the next hole.
    fn known(self) -> &'a [u8] {
        let end = self.hole().map_or(self.bytes.len(), |hole| hole.start.max(self.at));
        &self.bytes[self.at..end]
    }
}

impl Framing {
    fn begin(self, view: View<'_>) -> Begin<'_> {
        let data = view.known();
        let Some(first) = data.first() else { return Begin::Unsized };
        let length = |at: usize| big(data, at).map(usize::from);
        // The size of the message, where its content begins, and its length.
        let found = match self {
            Self::Length => length(0).map(|length| (2 + length, 2, length)),
            Self::Turn if (0x40..0x80).contains(first) => {
                length(2).map(|length| (4 + length.next_multiple_of(4), 4, length))
            }
            Self::Turn if *first < 4 => length(2).map(|length| (20 + length, 0, 20 + length)),
            Self::Interleaved if *first == b'$' => length(2).map(|length| (4 + length, 4, length)),
            Self::Tls if (20..24).contains(first) => length(3).map(|length| (5 + length, 0, 5 + length)),
            _ => return Begin::Other,
        };
        let Some((size, from, length)) = found else { return Begin::Unsized };
        let content = data.get(from..).unwrap_or_default();
        let content = &content[..content.len().min(length)];
        let fits = match self {
            Self::Tls => {
                content.get(1).is_none_or(|version| *version == 3) && content.get(2).is_none_or(|minor| *minor < 5)
            }
            _ => is_media(content, length),
        };
        match (fits, view.len() >= size) {
            (false, _) => Begin::Other,
            (true, false) => Begin::Part,
            (true, true) if self == Self::Turn => {
                Begin::Message(size, in_turn(&data[..size.min(data.len())], size).unwrap_or(content))
            }
            (true, true) => Begin::Message(size, content),
        }
    }

    /// Returns whether messages of this framing follow each other from here on, with one that is no coincidence: STUN has a cookie,
    /// two packets of RTP or of RTCP have the same SSRC, two records of TLS have the same version.
    fn is_proven(self, view: View<'_>) -> bool {
        let (mut rest, mut before): (_, Vec<(u32, Option<u16>)>) = (view, Vec::new());
        for number in 0..CHAIN {
            let Begin::Message(size, content) = self.begin(rest) else { return false };
            let is_proof = match self {
                Self::Tls => number > 0,
                _ if content.get(4..8) == Some(&STUN_COOKIE) && content[0] < 4 => true,
                Self::Turn if rest.known().get(4..8) == Some(&STUN_COOKIE) && rest.known()[0] < 4 => true,
                _ => source(content).is_some_and(|(ssrc, sequence)| {
                    let is_next = |last: Option<u16>| match (last, sequence) {
                        (Some(last), Some(sequence)) => (1..=STEP_MAX).contains(&sequence.wrapping_sub(last)),
                        (last, sequence) => last == sequence,
                    };
                    let follows = before.iter().any(|(other, last)| *other == ssrc && is_next(*last));
                    before.push((ssrc, sequence));
                    follows
                }),
            };
            if is_proof {
                return true;
            }
            rest = rest.from(size);
        }
        false
    }
}

/// Returns whether a message with this content is of RTP, RTCP, STUN or DTLS (RFC 7983), as far as its first bytes say.
fn is_media(content: &[u8], length: usize) -> bool {
    match content.first() {
        None => length > 0,
        Some(0..=3) => length >= 20 && content.get(4..8).is_none_or(|cookie| cookie == STUN_COOKIE),
        Some(20..=31) => length >= 13 && content.get(1).is_none_or(|version| *version == 0xFE),
        // Without a version (RFC 9147, section 4).
        Some(32..=63) => length >= 17,
        Some(128..=191) => length >= if is_rtcp(content) { 8 } else { 12 },
        Some(_) => false,
    }
}

/// Returns the SSRC of RTP with the sequence number, and that of RTCP without one.
fn source(content: &[u8]) -> Option<(u32, Option<u16>)> {
    let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
    match is_rtcp(content) {
        true => Some((u32::from_be_bytes(*content.get(4..)?.first_chunk()?), None)),
        false => RtpHeader::parse(content, &none).ok().map(|(header, _)| (header.ssrc, Some(header.sequence))),
    }
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Framed(Framing),
    /// It has no media that can be read.
    Foreign,
}

/// One direction of a connection.
struct Stream {
    /// Position of the next byte in order. Positions are sequence numbers that do not wrap.
    next: u64,
    /// Bytes in order of which no message is complete, with zeros where the capture lacks some.
    bytes: Vec<u8>,
    holes: Vec<Range<usize>>,
    /// Up to where bytes were in order at which time.
    ends: VecDeque<(usize, Time)>,
    /// Segments beyond a gap, by position, and their size.
    beyond: BTreeMap<u64, Waiting>,
    beyond_size: usize,
    known: Known,
    /// Bytes without a framing since the last message, and how many bytes there must be for the next search.
    unread: usize,
    search_at: usize,
    /// Time, direction and size of the headers of the last segment.
    last: Time,
    direction: u32,
    headers: u64,
}

/// A segment beyond a gap. The capture may lack its end.
struct Waiting {
    since: Time,
    data: Vec<u8>,
    size: usize,
}

/// A message of a stream.
pub(super) struct Message<'a> {
    /// When it was complete and in order.
    pub at: Time,
    pub interface: u32,
    /// That of the last packet of the stream.
    pub direction: u32,
    pub route: Route,
    /// What the capture has of its content.
    pub content: &'a [u8],
    /// Its size with headers of IP and TCP.
    pub bytes: u64,
}

type Each<'a> = &'a mut dyn FnMut(&Message<'_>);

/// The TCP streams of a capture.
#[derive(Default)]
pub(super) struct Streams {
    /// By interface and route.
    streams: BTreeMap<(u32, Route), Stream>,
    /// Bytes that all keep.
    kept: usize,
    /// Kinds of streams that are encrypted.
    pub(super) encrypted: BTreeSet<&'static str>,
}

impl Streams {
    /// Adds a segment at an interface with its direction, and calls `each` with every message that is found now.
    pub(super) fn add(&mut self, (interface, direction): (u32, u32), at: Time, segment: &Segment<'_>, each: Each<'_>) {
        let (from, to) = segment.route;
        let (key, reverse) = ((interface, (from, to)), (interface, (to, from)));
        if let Some(number) = segment.acknowledgment {
            // The receiver has what is not in the capture.
            self.change(reverse, each, &mut |stream| stream.skip_gap(at, stream.position(number)));
        }
        if segment.syn {
            self.end(key, each);
        }
        // A SYN alone is no stream yet: a scan of ports must not displace others.
        if segment.size > 0 && !self.streams.contains_key(&key) {
            while self.streams.len() >= STREAMS_MAX
                && let Some(silent) = self.streams.iter().min_by_key(|(_, stream)| stream.last).map(|(key, _)| *key)
            {
                self.remove(silent);
            }
            self.streams.insert(key, Stream::new(segment.sequence.wrapping_add(u32::from(segment.syn))));
        }
        self.change(key, each, &mut |stream| {
            stream.direction = direction;
            stream.add(at, segment);
        });
        self.change(key, each, &mut |stream| stream.skip_gap(at, 0));
        // What is lost before the end may still be repeated.
        if segment.ends && self.streams.get(&key).is_none_or(|stream| stream.beyond.is_empty()) {
            self.end(key, each);
        }
    }

    /// Takes the messages that wait in all streams.
    pub(super) fn finish(&mut self, each: Each<'_>) {
        let keys: Vec<_> = self.streams.keys().copied().collect();
        keys.into_iter().for_each(|key| self.end(key, each));
    }

    /// Removes a stream, after the messages that wait in it.
    fn end(&mut self, key: (u32, Route), each: Each<'_>) {
        self.change(key, each, &mut |stream| stream.search_at = 0);
        while self.streams.get(&key).is_some_and(|stream| !stream.beyond.is_empty()) {
            self.change(key, each, &mut |stream| stream.skip(Time::ZERO));
        }
        self.remove(key);
    }

    fn remove(&mut self, key: (u32, Route)) {
        self.kept -= self.streams.remove(&key).map_or(0, |stream| stream.kept());
    }

    /// Changes a stream if there is one, and takes the messages that are complete then.
    fn change(&mut self, key: (u32, Route), each: Each<'_>, change: &mut dyn FnMut(&mut Stream)) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let (_, ((_, from), (_, to))) = key;
        let before = stream.kept();
        change(stream);
        let (direction, headers, (interface, route)) = (stream.direction, stream.headers, key);
        if stream.messages(&mut |at, content, size| {
            each(&Message { at, interface, direction, route, content, bytes: headers + size as u64 });
        }) {
            let is_turn = TURN_PORTS.contains(&from) || TURN_PORTS.contains(&to);
            self.encrypted.insert(if is_turn { TURN_OVER_TLS } else { TLS });
        }
        self.kept = self.kept + stream.kept() - before;
        if self.kept > KEPT_MAX {
            self.kept -= stream.kept();
            let next =
                stream.beyond.last_key_value().map_or(stream.next, |(start, waiting)| start + waiting.size as u64);
            *stream = Stream { last: stream.last, direction, ..Stream::new(next as u32) };
        }
    }
}

impl Stream {
    fn new(sequence: u32) -> Self {
        Self {
            // So that positions before it are none below zero.
            next: (1 << 32) + u64::from(sequence),
            bytes: Vec::new(),
            holes: Vec::new(),
            ends: VecDeque::new(),
            beyond: BTreeMap::new(),
            beyond_size: 0,
            known: Known::Nothing,
            unread: 0,
            search_at: 0,
            last: Time::ZERO,
            direction: 0,
            headers: 0,
        }
    }

    fn kept(&self) -> usize {
        self.bytes.len() + self.beyond_size
    }

    /// Returns the position of a sequence number, the one closest to the next byte.
    fn position(&self, sequence: u32) -> u64 {
        self.next.wrapping_add_signed(i64::from(sequence.wrapping_sub(self.next as u32) as i32))
    }

    fn add(&mut self, at: Time, segment: &Segment<'_>) {
        if self.position(segment.sequence).abs_diff(self.next) > BEYOND_MAX {
            // Another connection, whose beginning is not in the capture.
            *self = Self { direction: self.direction, ..Self::new(segment.sequence) };
        }
        (self.last, self.headers) = (at, segment.headers);
        // A SYN has a number of its own.
        let start = self.position(segment.sequence) + u64::from(segment.syn);
        let end = start + segment.size as u64;
        let is_gap = start > self.next && self.known != Known::Foreign;
        match (end > self.next, is_gap) {
            (false, _) => {}
            (true, true) => {
                let before = self.beyond.get(&start).map(|waiting| (waiting.since, waiting.size));
                // A retransmission may be shorter.
                if before.is_none_or(|(_, size)| size < segment.size) {
                    let (since, size) = before.unwrap_or((at, 0));
                    self.beyond_size += segment.size - size;
                    let waiting = Waiting { since, data: segment.payload.to_vec(), size: segment.size };
                    self.beyond.insert(start, waiting);
                }
            }
            (true, false) => {
                self.take(at, start, segment.payload, segment.size);
                self.join(at);
            }
        }
    }

    /// Takes what is new of data that is in order at a time. `size` includes what the capture left out at its end.
    fn take(&mut self, at: Time, start: u64, data: &[u8], size: usize) {
        let end = start + size as u64;
        let known = self.next.saturating_sub(start) as usize;
        if end > self.next && self.known != Known::Foreign {
            let whole = self.bytes.len() + size - known;
            self.bytes.extend_from_slice(data.get(known..).unwrap_or_default());
            if self.bytes.len() < whole {
                self.holes.push(self.bytes.len()..whole);
            }
            self.bytes.resize(whole, 0);
            let at = self.ends.back().map_or(at, |(_, last)| at.max(*last));
            self.ends.push_back((whole, at));
        }
        self.next = self.next.max(end);
    }

    /// Takes the segments that are in order now.
    fn join(&mut self, now: Time) {
        while let Some(first) = self.beyond.first_entry().filter(|first| *first.key() <= self.next) {
            let (start, Waiting { since, data, size }) = first.remove_entry();
            self.beyond_size -= size;
            self.take(now.max(since), start, &data, size);
        }
    }

    /// Goes on after the first gap if its end was acknowledged, if it lasts for too long, or if too much is kept.
    fn skip_gap(&mut self, now: Time, acknowledged: u64) {
        let Some((first, waiting)) = self.beyond.first_key_value() else { return };
        let is_over = now.since(waiting.since) > GAP_MAX || self.beyond_size as u64 > BEYOND_MAX;
        if *first <= acknowledged || is_over {
            self.skip(now);
        }
    }

    /// Goes on after the first gap.
    fn skip(&mut self, now: Time) {
        let Some(first) = self.beyond.first_key_value().map(|(first, _)| *first) else { return };
        self.next = first;
        self.bytes.clear();
        self.holes.clear();
        self.ends.clear();
        self.search_at = 0;
        // The framing is recognised again.
        self.known = if self.known == Known::Foreign { Known::Foreign } else { Known::Nothing };
        self.join(now);
    }

    /// Takes the complete messages, each with the time at which its end was in order. Returns whether the stream turned out to be encrypted.
    fn messages(&mut self, each: &mut dyn FnMut(Time, &[u8], usize)) -> bool {
        let mut view = View { bytes: &self.bytes, holes: &self.holes, at: 0 };
        let mut ends = self.ends.iter().peekable();
        let mut is_encrypted = false;
        loop {
            match self.known {
                Known::Framed(framing) => match framing.begin(view) {
                    Begin::Message(size, content) => {
                        view = view.from(size);
                        while ends.next_if(|(end, _)| *end < view.at).is_some() {}
                        each(ends.peek().map_or(self.last, |(_, at)| *at), content, size);
                        self.unread = 0;
                    }
                    Begin::Part => break,
                    // Where the next message begins is not in the capture.
                    Begin::Unsized => match view.hole() {
                        Some(hole) => {
                            view.at = hole.end;
                            self.known = Known::Nothing;
                        }
                        None => break,
                    },
                    Begin::Other => self.known = Known::Nothing,
                },
                Known::Foreign => {
                    view.at = self.bytes.len();
                    break;
                }
                Known::Nothing if view.len() < self.search_at => break,
                Known::Nothing => match find(view) {
                    Some((skipped, framing)) => {
                        (view, self.search_at) = (view.from(skipped), 0);
                        is_encrypted |= framing == Framing::Tls;
                        self.known = if framing == Framing::Tls { Known::Foreign } else { Known::Framed(framing) };
                    }
                    None => {
                        let skipped = view.len().saturating_sub(SEARCHED);
                        (view, self.unread) = (view.from(skipped), self.unread + skipped);
                        // Rare searches cost little.
                        self.search_at = view.len() * 5 / 4;
                        if self.unread <= FOREIGN {
                            break;
                        }
                        self.known = Known::Foreign;
                    }
                },
            }
        }
        let taken = view.at;
        self.bytes.drain(..taken);
        self.holes.retain_mut(|hole| {
            *hole = hole.start.saturating_sub(taken)..hole.end.saturating_sub(taken);
            hole.end > 0
        });
        self.ends.retain_mut(|(end, _)| {
            *end = end.saturating_sub(taken);
            *end > 0
        });
        is_encrypted
    }
}

/// Returns the first place from which messages of a framing follow each other.
fn find(view: View<'_>) -> Option<(usize, Framing)> {
    (0..view.len().min(FOREIGN)).find_map(|from| {
        FRAMINGS.into_iter().find(|framing| framing.is_proven(view.from(from))).map(|framing| (from, framing))
    })
}

#[cfg(test)]
mod tests;
