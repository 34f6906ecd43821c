// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes an event log anew, one record for each event that is read, so that nothing else of the input is in the copy.

use super::fields::Message;
use super::{Event, Log, MarkKind, learn};
use crate::error::ReadError;
use paceline_wire::ExtensionIds;
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
    for (us, event) in all {
        let mut record = |field, content: Message| each(&Message::default().bytes(field, &content.0).0);
        let at_ms = Message::default().number(1, (us / 1000) as u64);
        let part = Message::default();
        let (field, part) = match event {
            Event::Rtp { incoming, header, bytes } => {
                let packet =
                    at_ms.number(4, u64::from(header.sequence)).fixed(5, header.timestamp).fixed(6, header.ssrc);
                let packet = packet.number(8, bytes).number(15, header.transport_sequence.map(u64::from));
                let packet = packet.number(17, header.abs_send_time.map(|time| time.bits().into()));
                record(RTP[usize::from(!incoming)], packet);
                continue;
            }
            Event::Mark(MarkKind::RouteChange) => {
                record(ROUTE, at_ms.number(2, 1));
                continue;
            }
            Event::RawRtp { incoming, header, bytes } => {
                let Some(header) = rtp(&header, &ids[usize::from(incoming)]) else { continue };
                (3, part.number(1, u64::from(incoming)).number(3, bytes).bytes(4, &header))
            }
            Event::Rtcp { incoming, raw } => (4, part.number(1, u64::from(incoming)).bytes(3, &rtcp(&raw))),
            Event::LossBased(bps) => (6, part.number(1, bps as u64)),
            Event::DelayBased { bps, over_use } => (7, part.number(1, bps as u64).number(2, 2 * u64::from(over_use))),
            Event::Mark(MarkKind::ProbeSent(bps)) => (17, part.number(2, bps as u64)),
            Event::Mark(MarkKind::ProbeDone(bps)) => (18, part.number(3, bps as u64)),
            Event::Mark(MarkKind::ProbeFailed) => (18, part.number(2, 1)),
            Event::Mark(MarkKind::ApplicationLimited(is_limited)) => (19, part.number(1, u64::from(is_limited))),
            Event::Mark(_) => continue,
        };
        record(VERSION_1, Message::default().number(1, us as u64).bytes(field, &part.0));
    }
    Ok(())
}
