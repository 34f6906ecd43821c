// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's state of one stream.

use crate::flow::fec_decoder::FecDecoder;
use crate::flow::nack::NackList;
use crate::flow::reassembly::{FramePacket, Reassembly};
use crate::flow::stream_info::StreamInfo;
use paceline_units::RemoteTime;
use paceline_wire::{FIRST_CYCLE, ReceptionStats, unwrap_after};

/// The largest distance of a media packet behind the highest number. The 16-bit numbers wrap, so a number further back
/// is taken for one ahead, after an outage.
const LATE_MAX: u64 = 4096;

pub(super) struct ReceiverStream {
    pub info: StreamInfo,
    /// Reception statistics of the media SSRC and the retransmission SSRC.
    pub media: ReceptionStats,
    pub rtx: ReceptionStats,
    highest: Option<u64>,
    pub nack: NackList,
    /// Present once a packet arrived in RED: the stream is protected by FEC.
    pub fec: Option<FecDecoder>,
    pub reassembly: Reassembly,
    /// Middle 32 bits of the last sender report's NTP timestamp, and when the report arrived.
    pub last_sr: Option<(u32, RemoteTime)>,
}

impl ReceiverStream {
    pub fn new(info: StreamInfo) -> Self {
        Self {
            info,
            media: ReceptionStats::default(),
            rtx: ReceptionStats::default(),
            highest: None,
            nack: NackList::new(),
            fec: None,
            reassembly: Reassembly::new(),
            last_sr: None,
        }
    }

    /// Unwraps a media sequence number.
    pub fn unwrap(&self, number: u16) -> u64 {
        match self.highest {
            None => number as u64 + FIRST_CYCLE,
            Some(highest) => unwrap_after(number, highest + 1, LATE_MAX),
        }
    }

    pub fn fec_decoder(&mut self) -> &mut FecDecoder {
        self.fec.get_or_insert_with(|| FecDecoder::new(self.info.ssrc))
    }

    /// Handles a packet of a video stream, received or recovered. Returns whether a frame may be complete now.
    pub fn handle_packet(&mut self, now: RemoteTime, sequence: u64, packet: FramePacket, nack: bool) -> bool {
        self.highest = Some(self.highest.map_or(sequence, |highest| highest.max(sequence)));
        if nack {
            self.nack.handle_packet(now, sequence);
            if self.fec.is_some() {
                // All FEC of a frame was sent before the next frame begins.
                self.nack.release_below(if packet.start { sequence } else { 0 });
            }
        }
        self.reassembly.insert(now, sequence, packet)
    }
}
