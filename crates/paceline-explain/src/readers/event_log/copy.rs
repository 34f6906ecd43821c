//! Writes an event log anew, one record for each event that is read, so that nothing else of the input is in the copy.

use super::messages::{Event1, Numbers, Rtcp1, Rtp, Rtp1, Single};
use super::{Event, Log, MarkKind, learn};
use crate::error::ReadError;
use paceline_wire::ExtensionIds;
use prost::encoding::message::encode;
use std::io::Read;

/// Fields of an event of version 1, and in version 2 of RTP that was received, of RTP that was sent, and of a change of the route.
const VERSION_1: u32 = 1;
const RTP: [u32; 2] = [2, 3];
const ROUTE: u32 = 32;

/// Returns what is kept of a header of RTP, whose extensions have these ids.
pub(crate) type KeptHeader = dyn Fn(&[u8], &ExtensionIds) -> Option<Vec<u8>>;

/// Reads a log and calls `each` with the bytes of each record of the copy. `rtp` and `rtcp` return what is kept of a header and of a
/// compound.
///
/// # Errors
/// No record can be read.
pub(crate) fn copy(
    input: &mut impl Read,
    rtp: &KeptHeader,
    rtcp: &dyn Fn(&[u8]) -> Vec<u8>,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), ReadError> {
    let mut all = Log::read(input)?.events.all;
    all.sort_by_key(|(us, _)| *us);
    let ids = learn(&all);
    let mut bytes = Vec::new();
    for (us, event) in all {
        bytes.clear();
        let one = |first, second, third| Some(Numbers { first, second, third });
        let event1 = Event1 { us: Some(us), ..Event1::default() };
        let event1 = match event {
            Event::Rtp { incoming, header, bytes: size } => {
                let packet = Rtp {
                    ms: Some(us / 1000),
                    sequence: Some(header.sequence.into()),
                    timestamp: Some(header.timestamp),
                    ssrc: Some(header.ssrc),
                    payload: Some(size as u32),
                    transport_sequence: header.transport_sequence.map(u32::from),
                    abs_send_time: header.abs_send_time.map(|time| time.bits()),
                    ..Rtp::default()
                };
                encode(RTP[usize::from(!incoming)], &packet, &mut bytes);
                each(&bytes);
                continue;
            }
            Event::Mark(MarkKind::RouteChange) => {
                encode(ROUTE, &Single { ms: Some(us / 1000), second: Some(1), third: None }, &mut bytes);
                each(&bytes);
                continue;
            }
            Event::RawRtp { incoming, header, bytes: size } => {
                let Some(header) = rtp(&header, &ids[usize::from(incoming)]) else { continue };
                let rtp = Rtp1 { incoming: Some(incoming), length: Some(size as u32), header };
                Event1 { rtp: Some(rtp), ..event1 }
            }
            Event::Rtcp { incoming, raw } => {
                Event1 { rtcp: Some(Rtcp1 { incoming: Some(incoming), data: rtcp(&raw) }), ..event1 }
            }
            Event::LossBased(bps) => Event1 { loss: one(Some(bps as u64), None, None), ..event1 },
            Event::DelayBased { bps, over_use } => {
                Event1 { delay: one(Some(bps as u64), Some(if over_use { 2 } else { 0 }), None), ..event1 }
            }
            Event::Mark(MarkKind::ProbeSent(bps)) => Event1 { cluster: one(None, Some(bps as u64), None), ..event1 },
            Event::Mark(MarkKind::ProbeDone(bps)) => Event1 { result: one(None, None, Some(bps as u64)), ..event1 },
            Event::Mark(MarkKind::ProbeFailed) => Event1 { result: one(None, Some(1), None), ..event1 },
            Event::Mark(MarkKind::ApplicationLimited(is_limited)) => {
                Event1 { alr: one(Some(u64::from(is_limited)), None, None), ..event1 }
            }
            Event::Mark(_) => continue,
        };
        encode(VERSION_1, &event1, &mut bytes);
        each(&bytes);
    }
    Ok(())
}
