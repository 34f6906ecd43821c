// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTC event logs of libwebrtc, version 2 and the deprecated version 1, also mixed.
//!
//! A log is a sequence of records without a length or a checksum: a protobuf tag, a length, a body. Records of version 2 hold many
//! events of one kind, so events are sorted by time after all are read.

pub(crate) mod copy;
mod delta;
mod fields;

use crate::error::ReadError;
use crate::model::{Call, Confidence, MarkKind, Origin, Quantity, Series};
use crate::readers::capture::Learner;
use crate::transport::{Ends, Transport};
use delta::{BadDelta, blobs};
use fields::Fields;
use paceline_units::{Ecn, Time};
use paceline_wire::{AbsSendTime, ExtensionIds, RtpHeader};
use prost::encoding::decode_varint;
use std::io::Read;

/// Name of the format.
pub const FORMAT: &str = "rtc-event-log";

/// The longest body of a record (libwebrtc, `rtc_event_log_parser.cc`).
const BODY_MAX: u64 = 10_000_000;
/// Events of a record, and of a log, at most: bounds the memory.
const RECORD_EVENTS_MAX: u64 = 1 << 18;
const EVENTS_MAX: usize = 4 << 20;

/// A field of `EventStream` is known.
fn is_field(number: u64) -> bool {
    matches!(number, 1..=5 | 7..=10 | 16..=35 | 101..=104)
}

/// Returns whether bytes are the beginning of a log.
pub fn begins(head: &[u8]) -> bool {
    let mut rest = head;
    let (Ok(tag), Ok(length)) = (decode_varint(&mut rest), decode_varint(&mut rest)) else { return false };
    if tag & 7 != 2 || !is_field(tag >> 3) || length == 0 || length > BODY_MAX {
        return false;
    }
    // The tag after the first record, if it is in sight.
    match rest.get(length as usize..) {
        None => true,
        Some(mut next) => {
            next.is_empty() || decode_varint(&mut next).is_ok_and(|tag| tag & 7 == 2 && is_field(tag >> 3))
        }
    }
}

/// An event. Times are in µs of the log's clock.
enum Event {
    Rtp { incoming: bool, header: RtpHeader, bytes: u64 },
    RawRtp { incoming: bool, header: Vec<u8>, bytes: u64 },
    Rtcp { incoming: bool, raw: Vec<u8> },
    LossBased(f64),
    DelayBased { bps: f64, over_use: bool },
    Mark(MarkKind),
}

#[derive(Default)]
struct Events {
    all: Vec<(i64, Event)>,
    left_out: bool,
    damaged: u64,
}

impl Events {
    fn push(&mut self, us: i64, event: Event) {
        if self.all.len() >= EVENTS_MAX {
            self.left_out = true;
        } else {
            self.all.push((us, event));
        }
    }
}

/// The events of a log.
struct Log {
    events: Events,
    /// Records, and the byte at which it is cut.
    records: u64,
    cut: Option<u64>,
}

impl Log {
    fn read(input: &mut impl Read) -> Result<Self, ReadError> {
        let mut events = Events::default();
        let mut body = Vec::new();
        let (mut records, mut at, mut cut) = (0u64, 0u64, None);
        loop {
            let Some((tag, n)) = stream_varint(input)? else { break };
            let Some((length, m)) = stream_varint(input)? else {
                cut = Some(at);
                break;
            };
            if tag & 7 != 2 || length > BODY_MAX {
                cut = Some(at);
                break;
            }
            body.clear();
            if (input.by_ref().take(length).read_to_end(&mut body)? as u64) < length {
                cut = Some(at);
                break;
            }
            at += n + m + length;
            records += 1;
            if record(tag >> 3, &body, &mut events).is_err() {
                events.damaged += 1;
            }
        }
        match (cut, records) {
            (Some(at), 0) => {
                let problem = "no record of an event log".to_owned();
                Err(ReadError::Damaged { format: FORMAT, place: format!("byte {at}"), problem })
            }
            _ => Ok(Self { events, records, cut }),
        }
    }
}

/// Reads a log.
///
/// # Errors
/// No record can be read, or the log has no RTP.
pub fn read(input: &mut impl Read) -> Result<Call, ReadError> {
    let Log { events, records, cut } = Log::read(input)?;
    let mut notes = Vec::new();
    if let Some(at) = cut {
        notes.push(format!("the log is cut or damaged at byte {at}, after {records} records"));
    }
    if events.damaged > 0 {
        notes.push(format!("{} records could not be decoded and are left out", events.damaged));
    }
    if events.left_out {
        notes.push(format!("events after the first {EVENTS_MAX} are left out"));
    }
    let mut call = build(events.all, notes);
    call.drop_short();
    match call.flows.is_empty() {
        true => Err(ReadError::Empty { format: FORMAT, problem: call.why_empty("no RTP packet in it").to_owned() }),
        false => Ok(call),
    }
}

/// Returns a varint and its length, or nothing at the end.
fn stream_varint(input: &mut impl Read) -> Result<Option<(u64, u64)>, ReadError> {
    let (mut value, mut byte) = (0, [0]);
    for (n, shift) in (0..64).step_by(7).enumerate() {
        if input.read(&mut byte)? == 0 {
            return Ok(None);
        }
        value |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] < 0x80 {
            return Ok(Some((value, n as u64 + 1)));
        }
    }
    Ok(None)
}

/// A record that cannot be decoded.
pub(crate) struct BadRecord;

impl From<prost::DecodeError> for BadRecord {
    fn from(_: prost::DecodeError) -> Self {
        Self
    }
}

impl From<BadDelta> for BadRecord {
    fn from(_: BadDelta) -> Self {
        Self
    }
}

fn record(field: u64, body: &[u8], events: &mut Events) -> Result<(), BadRecord> {
    match field {
        1 => version_1(&Fields::read(body)?, events)?,
        2 | 3 => rtp(field == 2, &Fields::read(body)?, events)?,
        4 | 5 => rtcp(field == 4, &Fields::read(body)?, events)?,
        18 => {
            let all = Fields::read(body)?;
            let n = count(&all, 5)?;
            for (us, bps) in times(&all, n)?.into_iter().zip(all.column(2, n)?) {
                events.push(us, Event::LossBased(bps.unwrap_or(0) as f64));
            }
        }
        19 => {
            let all = Fields::read(body)?;
            let n = count(&all, 4)?;
            for ((us, bps), state) in times(&all, n)?.into_iter().zip(all.column(2, n)?).zip(all.column(3, n)?) {
                // 1 normal, 2 under-use, 3 over-use.
                events.push(us, Event::DelayBased { bps: bps.unwrap_or(0) as f64, over_use: state == Some(3) });
            }
        }
        21..=25 | 32 => {
            let one = Fields::read(body)?;
            let us = times(&one, 0)?[0];
            let third = one.number(3).unwrap_or(0) as f64;
            let kind = match (field, one.number(2)) {
                (21, _) => MarkKind::ProbeSent(third),
                (22, _) => MarkKind::ProbeDone(third),
                (23, _) => MarkKind::ProbeFailed,
                (24, value) => MarkKind::ApplicationLimited(value == Some(1)),
                // The first selection of a pair is no change; `build` removes it.
                (25, Some(4)) | (32, Some(1)) => MarkKind::RouteChange,
                _ => return Ok(()),
            };
            events.push(us, Event::Mark(kind));
        }
        _ => {}
    }
    Ok(())
}

/// Returns how many events follow the first one, which this field says.
fn count(all: &Fields<'_>, field: u32) -> Result<usize, BadRecord> {
    let deltas = all.number(field).unwrap_or(0);
    if deltas > RECORD_EVENTS_MAX { Err(BadRecord) } else { Ok(deltas as usize) }
}

/// Returns the times of events, whose milliseconds are the field 1.
fn times(all: &Fields<'_>, count: usize) -> Result<Vec<i64>, BadRecord> {
    let all = all.column(1, count)?.into_iter();
    all.map(|ms| (ms.ok_or(BadRecord)? as i64).checked_mul(1000).ok_or(BadRecord)).collect()
}

fn rtp(incoming: bool, all: &Fields<'_>, events: &mut Events) -> Result<(), BadRecord> {
    let n = count(all, 11)?;
    let (sequences, timestamps) = (all.column(4, n)?, all.column(5, n)?);
    let (payloads, headers, paddings) = (all.column(8, n)?, all.column(9, n)?, all.column(10, n)?);
    let (transport, send_times) = (all.column(15, n)?, all.column(17, n)?);
    let ssrc = all.number(6).ok_or(BadRecord)? as u32;
    for (index, us) in times(all, n)?.into_iter().enumerate() {
        let header = RtpHeader {
            sequence: sequences[index].unwrap_or(0) as u16,
            timestamp: timestamps[index].unwrap_or(0) as u32,
            ssrc,
            abs_send_time: send_times[index].map(|bits| AbsSendTime::from_bits(bits as u32)),
            transport_sequence: transport[index].map(|sequence| sequence as u16),
            ..RtpHeader::default()
        };
        let sizes = [&payloads, &headers, &paddings].map(|sizes| sizes[index].unwrap_or(0).min(1 << 16));
        events.push(us, Event::Rtp { incoming, header, bytes: sizes.iter().sum() });
    }
    Ok(())
}

fn rtcp(incoming: bool, all: &Fields<'_>, events: &mut Events) -> Result<(), BadRecord> {
    let n = count(all, 3)?;
    let others = if n == 0 { Vec::new() } else { blobs(all.bytes(102), n)? };
    for (us, raw) in times(all, n)?.into_iter().zip([all.bytes(2)].into_iter().chain(others)) {
        events.push(us, Event::Rtcp { incoming, raw: raw.to_vec() });
    }
    Ok(())
}

fn version_1(event: &Fields<'_>, events: &mut Events) -> Result<(), BadRecord> {
    let Some(us) = event.number(1) else { return Ok(()) };
    for field in [3, 4, 6, 7, 17, 18, 19] {
        let Some(part) = event.message(field)? else { continue };
        let bps = |field| part.number(field).unwrap_or(0) as f64;
        let incoming = part.number(1).is_some_and(|incoming| incoming != 0);
        let one = match field {
            3 => {
                let bytes = part.number(3).unwrap_or(0).min(1 << 16);
                Event::RawRtp { incoming, header: part.bytes(4).to_vec(), bytes }
            }
            4 => Event::Rtcp { incoming, raw: part.bytes(3).to_vec() },
            6 if part.number(1).is_none() => continue,
            6 => Event::LossBased(bps(1)),
            // 0 normal, 1 under-use, 2 over-use.
            7 => Event::DelayBased { bps: bps(1), over_use: part.number(2) == Some(2) },
            17 => Event::Mark(MarkKind::ProbeSent(bps(2))),
            18 if part.number(2).is_none_or(|failure| failure == 0) => Event::Mark(MarkKind::ProbeDone(bps(3))),
            18 => Event::Mark(MarkKind::ProbeFailed),
            _ => Event::Mark(MarkKind::ApplicationLimited(part.number(1) == Some(1))),
        };
        events.push(us as i64, one);
    }
    Ok(())
}

/// Returns a time since the first event. More than 100 days after it is a damaged time.
fn since(first: i64, us: i64) -> Option<Time> {
    us.checked_sub(first).filter(|us| *us < 8_640_000_000_000).map(|us| Time::from_nanos(us * 1000))
}

/// Returns the ids of header extensions of packets that were sent and that were received, from events in order of time.
fn learn(all: &[(i64, Event)]) -> [ExtensionIds; 2] {
    let first = all.first().map_or(0, |(us, _)| *us);
    let mut learners = [Learner::default(), Learner::default()];
    for (us, event) in all {
        if let (Event::RawRtp { incoming, header, .. }, Some(at)) = (event, since(first, *us)) {
            learners[usize::from(*incoming)].packet(at, header);
        }
    }
    learners.map(|learner| learner.ids())
}

fn build(mut all: Vec<(i64, Event)>, notes: Vec<String>) -> Call {
    all.sort_by_key(|(us, _)| *us);
    let first = all.first().map_or(0, |(us, _)| *us);
    let time = |us: i64| since(first, us);
    let ids = learn(&all);
    let (mut sent, mut received) = (Transport::new(Ends::Sender), Transport::new(Ends::Receiver));
    let log = || Series::new(Origin::Log, Confidence::Exact);
    let (mut loss_based, mut delay_based) = (log(), log());
    let (mut over_used, mut routes) = (false, 0);
    for (us, event) in all {
        let Some(at) = time(us) else { continue };
        match event {
            Event::Rtp { incoming: false, header, bytes } => sent.rtp_sent(at, &header, bytes, Ecn::NotEct),
            Event::Rtp { incoming: true, header, bytes } => received.rtp_arrived(at, &header, bytes, Ecn::NotEct),
            Event::RawRtp { incoming, header, bytes } => {
                let Ok((header, _)) = RtpHeader::parse(&header, &ids[usize::from(incoming)]) else { continue };
                match incoming {
                    false => sent.rtp_sent(at, &header, bytes, Ecn::NotEct),
                    true => received.rtp_arrived(at, &header, bytes, Ecn::NotEct),
                }
            }
            Event::Rtcp { incoming: true, raw } => sent.report_arrived(at, &raw),
            Event::Rtcp { incoming: false, raw } => {
                sent.rtcp_sent(at, &raw);
                received.report_sent(at, &raw);
            }
            Event::LossBased(bps) => loss_based.push(at, bps),
            Event::DelayBased { bps, over_use } => {
                delay_based.push(at, bps);
                if over_use && !over_used {
                    sent.mark(at, MarkKind::OverUse);
                }
                over_used = over_use;
            }
            Event::Mark(MarkKind::RouteChange) => {
                routes += 1;
                if routes > 1 && at > Time::from_secs(2) {
                    sent.mark(at, MarkKind::RouteChange);
                }
            }
            Event::Mark(kind) => sent.mark(at, kind),
        }
    }
    let mut flows = Vec::new();
    if !sent.is_empty() {
        let mut flow = sent.finish("sent".to_owned());
        // Events of the loss-based controller carry the estimate that results from both.
        let (target, estimate) =
            if loss_based.points.is_empty() { (delay_based, log()) } else { (loss_based, delay_based) };
        flow.series.insert(Quantity::Target, target);
        flow.series.insert(Quantity::Estimate, estimate);
        flow.finish();
        flows.push(flow);
    }
    if !received.is_empty() {
        flows.push(received.finish("received".to_owned()));
    }
    Call { format: FORMAT.to_owned(), flows, notes }
}
