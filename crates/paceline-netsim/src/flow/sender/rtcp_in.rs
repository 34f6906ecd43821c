// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incoming RTCP: requests are handled here, reports and messages by the core.

use super::{MediaSender, QueuedKind, QueuedPacket};
use paceline::{PacketKind, ReportStatus};
use paceline_units::{DataSize, Time};
use paceline_wire::{Rtcp, parse_compound, rtx};

impl MediaSender {
    /// Handles an incoming RTCP datagram. Malformed datagrams, and reports on packets that were never sent, are counted
    /// and ignored.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        match parse_compound(bytes) {
            Err(error) => self.core.reject(Some(error)),
            Ok(compound) => {
                let mut status = ReportStatus::default();
                for packet in compound {
                    self.handle_rtcp(now, &packet, &mut status);
                }
            }
        }
        self.core.settle();
        self.finish(now);
    }

    fn handle_rtcp(&mut self, now: Time, packet: &Rtcp<'_>, status: &mut ReportStatus) {
        match *packet {
            Rtcp::Nack { media_ssrc, lost, .. } => self.handle_nack(now, media_ssrc, lost),
            Rtcp::Pli { media_ssrc, .. } => match self.streams.iter_mut().find(|s| s.config.info.ssrc == media_ssrc) {
                Some(stream) => stream.config.source.request_key_frame(now),
                None => self.core.reject(None),
            },
            _ => {
                self.core.handle_rtcp_packet(now, packet, status);
                if let Some(fraction_lost) = self.core.take_fraction_lost() {
                    self.repair.handle_loss(now, fraction_lost);
                }
            }
        }
    }

    fn handle_nack(&mut self, now: Time, media_ssrc: u32, lost: impl Iterator<Item = u16>) {
        let Some(place) = self.streams.iter().position(|s| s.config.info.ssrc == media_ssrc) else {
            self.core.reject(None);
            return;
        };
        if !self.repair.retransmits {
            return;
        }
        let rtt = self.repair.handle_nack(&self.core);
        let stream = &mut self.streams[place];
        for sequence in lost {
            let Some(packet) = stream.store.find(now, sequence, rtt) else { continue };
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers + rtx::LEN as u64);
            if self.core.has_room(size) && self.repair.spend(now, size, &self.core) {
                stream.store.mark_resent(now, sequence);
                let queued = QueuedPacket { stream: place as u8, kind: QueuedKind::Retransmission, packet };
                let frame = (packet.timestamp, packet.start);
                self.core.push_packet(now, place, PacketKind::Retransmission, frame, queued, size);
            }
        }
    }
}
