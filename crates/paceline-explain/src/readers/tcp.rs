//! Media in TCP streams: segments to messages.
//!
//! The framing of a stream is recognised by its content, because ports vary and a capture may begin in the middle of a stream. After a
//! gap, or bytes of another kind, it is recognised again, so nothing but the messages in the gap is missing.

use super::datagram::Route;
use super::layers::{STUN_COOKIE, Segment, big, in_turn};
use paceline_units::{Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::{BTreeMap, BTreeSet};

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
    /// A message of this size with its framing, and what it carries.
    Message(usize, &'a [u8]),
    /// The beginning of a message.
    Part,
    /// No message of this framing.
    Other,
}

impl Framing {
    fn begin(self, data: &[u8]) -> Begin<'_> {
        let Some(first) = data.first() else { return Begin::Part };
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
        let Some((size, from, length)) = found else { return Begin::Part };
        let content = data.get(from..).unwrap_or_default();
        let content = &content[..content.len().min(length)];
        let fits = match self {
            Self::Tls => {
                content.get(1).is_none_or(|version| *version == 3) && content.get(2).is_none_or(|minor| *minor < 5)
            }
            _ => is_media(content, length),
        };
        match (fits, data.len() >= size) {
            (false, _) => Begin::Other,
            (true, false) => Begin::Part,
            (true, true) if self == Self::Turn => Begin::Message(size, in_turn(&data[..size]).unwrap_or(content)),
            (true, true) => Begin::Message(size, content),
        }
    }

    /// Returns whether messages of this framing follow each other from here on, with one that is no coincidence: STUN has a cookie,
    /// two packets of RTP or of RTCP have the same SSRC, two records of TLS have the same version.
    fn is_proven(self, data: &[u8]) -> bool {
        let (mut rest, mut before): (_, Vec<(u32, Option<u16>)>) = (data, Vec::new());
        for number in 0..CHAIN {
            let Begin::Message(size, content) = self.begin(rest) else { return false };
            let is_proof = match self {
                Self::Tls => number > 0,
                _ if content.get(4..8) == Some(&STUN_COOKIE) && content[0] < 4 => true,
                Self::Turn if rest.get(4..8) == Some(&STUN_COOKIE) && rest[0] < 4 => true,
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
            rest = &rest[size..];
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
    /// Bytes in order of which no message is complete.
    bytes: Vec<u8>,
    /// Segments beyond a gap with their times, by position, and their size.
    beyond: BTreeMap<u64, (Time, Vec<u8>)>,
    beyond_size: usize,
    known: Known,
    /// Bytes without a framing since the last message, and how many bytes there must be for the next search.
    unread: usize,
    search_at: usize,
    /// Time and size of the headers of the last segment.
    last: Time,
    headers: u64,
}

/// Handles a message: its route, its content, and its size with headers.
type Each<'a> = &'a mut dyn FnMut(Route, &[u8], u64);

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
    /// Adds a segment at an interface, and calls `each` with every message that is complete now.
    pub(super) fn add(&mut self, interface: u32, at: Time, segment: &Segment<'_>, each: Each<'_>) {
        let (from, to) = segment.route;
        let (key, reverse) = ((interface, (from, to)), (interface, (to, from)));
        if let Some(number) = segment.acknowledgment {
            // The receiver has what is not in the capture.
            self.change(reverse, each, &mut |stream| stream.skip_gap(at, stream.position(number)));
        }
        if segment.syn {
            self.remove(key);
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
        self.change(key, each, &mut |stream| stream.add(at, segment));
        self.change(key, each, &mut |stream| stream.skip_gap(at, 0));
        if segment.ends {
            self.remove(key);
        }
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
        let headers = stream.headers;
        if stream.messages(&mut |content, size| each(key.1, content, headers + size as u64)) {
            let is_turn = TURN_PORTS.contains(&from) || TURN_PORTS.contains(&to);
            self.encrypted.insert(if is_turn { TURN_OVER_TLS } else { TLS });
        }
        self.kept = self.kept + stream.kept() - before;
        if self.kept > KEPT_MAX {
            self.kept -= stream.kept();
            let next =
                stream.beyond.last_key_value().map_or(stream.next, |(start, (_, data))| start + data.len() as u64);
            *stream = Stream { last: stream.last, ..Stream::new(next as u32) };
        }
    }
}

impl Stream {
    fn new(sequence: u32) -> Self {
        Self {
            // So that positions before it are none below zero.
            next: (1 << 32) + u64::from(sequence),
            bytes: Vec::new(),
            beyond: BTreeMap::new(),
            beyond_size: 0,
            known: Known::Nothing,
            unread: 0,
            search_at: 0,
            last: Time::ZERO,
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
            *self = Self::new(segment.sequence);
        }
        (self.last, self.headers) = (at, segment.headers);
        // A SYN has a number of its own.
        let start = self.position(segment.sequence) + u64::from(segment.syn);
        let end = start + segment.size as u64;
        let is_gap = start > self.next && self.known != Known::Foreign;
        match (end > self.next, is_gap) {
            (false, _) => {}
            (true, true) => {
                let before = self.beyond.get(&start).map(|(since, data)| (*since, data.len()));
                // A retransmission may be shorter.
                if before.is_none_or(|(_, size)| size < segment.size) {
                    let mut data = segment.payload.to_vec();
                    data.resize(segment.size, 0);
                    let (since, size) = before.unwrap_or((at, 0));
                    self.beyond_size += data.len() - size;
                    self.beyond.insert(start, (since, data));
                }
            }
            (true, false) => {
                self.take(start, segment.payload, segment.size);
                self.join();
            }
        }
    }

    /// Takes what is new of data in order. What the capture left out of it is taken as zeros.
    fn take(&mut self, start: u64, data: &[u8], size: usize) {
        let end = start + size as u64;
        let known = self.next.saturating_sub(start) as usize;
        if end > self.next && self.known != Known::Foreign {
            let whole = self.bytes.len() + size - known;
            self.bytes.extend_from_slice(data.get(known..).unwrap_or_default());
            self.bytes.resize(whole, 0);
        }
        self.next = self.next.max(end);
    }

    /// Takes the segments that are in order now.
    fn join(&mut self) {
        while let Some(first) = self.beyond.first_entry().filter(|first| *first.key() <= self.next) {
            let (start, (_, data)) = first.remove_entry();
            self.beyond_size -= data.len();
            self.take(start, &data, data.len());
        }
    }

    /// Goes on after the first gap if its end was acknowledged, if it lasts for too long, or if too much is kept.
    fn skip_gap(&mut self, now: Time, acknowledged: u64) {
        let Some((first, (at, _))) = self.beyond.first_key_value() else { return };
        let is_over = now.since(*at) > GAP_MAX || self.beyond_size as u64 > BEYOND_MAX;
        if *first <= acknowledged || is_over {
            self.next = *first;
            self.bytes.clear();
            self.search_at = 0;
            // The framing is recognised again.
            self.known = if self.known == Known::Foreign { Known::Foreign } else { Known::Nothing };
            self.join();
        }
    }

    /// Takes the complete messages. Returns whether the stream turned out to be encrypted.
    fn messages(&mut self, each: &mut dyn FnMut(&[u8], usize)) -> bool {
        let mut at = 0;
        let mut is_encrypted = false;
        loop {
            let rest = &self.bytes[at..];
            match self.known {
                Known::Framed(framing) => match framing.begin(rest) {
                    Begin::Message(size, content) => {
                        each(content, size);
                        (at, self.unread) = (at + size, 0);
                    }
                    Begin::Part => break,
                    Begin::Other => self.known = Known::Nothing,
                },
                Known::Foreign => {
                    at = self.bytes.len();
                    break;
                }
                Known::Nothing if rest.len() < self.search_at => break,
                Known::Nothing => match find(rest) {
                    Some((skipped, framing)) => {
                        (at, self.search_at) = (at + skipped, 0);
                        is_encrypted |= framing == Framing::Tls;
                        self.known = if framing == Framing::Tls { Known::Foreign } else { Known::Framed(framing) };
                    }
                    None => {
                        let skipped = rest.len().saturating_sub(SEARCHED);
                        (at, self.unread) = (at + skipped, self.unread + skipped);
                        // Rare searches cost little.
                        self.search_at = (rest.len() - skipped) * 5 / 4;
                        if self.unread <= FOREIGN {
                            break;
                        }
                        self.known = Known::Foreign;
                    }
                },
            }
        }
        self.bytes.drain(..at);
        is_encrypted
    }
}

/// Returns the first place from which messages of a framing follow each other.
fn find(data: &[u8]) -> Option<(usize, Framing)> {
    (0..data.len()).find_map(|from| {
        FRAMINGS.into_iter().find(|framing| framing.is_proven(&data[from..])).map(|framing| (from, framing))
    })
}

#[cfg(test)]
mod tests;
