// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report blocks of a receiver of RTP: losses and jitter of each SSRC, and the time since its last sender report
//! (RFC 3550, section 6.4.1).

use crate::MediaKind;
use crate::sender::rtp_timestamp;
use alloc::vec::Vec;
use paceline_units::{RemoteTime, Time, TimeDelta};
use paceline_wire::{ReceptionStats, ReportBlock, Rtcp, RtpHeader, ntp};

/// The time between reports (libwebrtc's `kDefaultVideoReportInterval`).
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// The most SSRCs in a report; others from which something arrived later have no block.
pub(super) const BLOCKS_MAX: usize = 8;

#[derive(Clone, Debug)]
struct Source {
    ssrc: u32,
    stats: ReceptionStats,
    /// The middle of the NTP time of the last sender report, and its arrival.
    last_report: Option<(u32, RemoteTime)>,
}

/// The SSRCs that were added and from which something arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Receptions {
    sources: Vec<Source>,
    /// When the next blocks are due; `None` if nothing has arrived since the last ones.
    pub due: Option<RemoteTime>,
}

impl Receptions {
    fn source(&mut self, ssrc: u32) -> Option<&mut Source> {
        let is_known = self.sources.iter().any(|source| source.ssrc == ssrc);
        if !is_known && self.sources.len() < BLOCKS_MAX {
            self.sources.push(Source { ssrc, stats: ReceptionStats::default(), last_report: None });
        }
        self.sources.iter_mut().find(|source| source.ssrc == ssrc)
    }

    pub fn handle_packet(&mut self, now: RemoteTime, header: &RtpHeader, media: MediaKind) {
        let clock_rate = if media == MediaKind::Audio { 48_000 } else { 90_000 };
        let arrival = rtp_timestamp(Time::from_nanos(now.as_nanos()), clock_rate);
        let Some(source) = self.source(header.ssrc) else { return };
        if source.stats.on_packet(header.sequence, header.timestamp, arrival) {
            self.due.get_or_insert(now + INTERVAL);
        }
    }

    /// Handles a packet of RTCP about one of these SSRCs.
    pub fn handle_rtcp(&mut self, now: RemoteTime, packet: &Rtcp<'_>, ssrcs: &[u32]) {
        if let &Rtcp::SenderReport { ssrc, ntp, .. } = packet
            && ssrcs.contains(&ssrc)
            && let Some(source) = self.source(ssrc)
        {
            source.last_report = Some((ntp::middle(ntp), now));
        }
    }

    pub fn remove(&mut self, ssrcs: &[u32]) {
        self.sources.retain(|source| !ssrcs.contains(&source.ssrc));
    }

    /// Writes the blocks that are due, or with `early` those of what has arrived since the last ones. Returns how many there are.
    pub fn write(&mut self, now: RemoteTime, early: bool, blocks: &mut [ReportBlock; BLOCKS_MAX]) -> usize {
        if self.due.is_none_or(|due| now < due && !early) {
            return 0;
        }
        self.due = None;
        let written = self.sources.iter_mut().filter_map(|source| {
            let (middle, delay) = source.last_report.map_or((0, 0), |(middle, at)| (middle, ntp::delay(now - at)));
            source.stats.block(source.ssrc, middle, delay)
        });
        blocks.iter_mut().zip(written).map(|(place, block)| *place = block).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedbackFormats, PacketHead, PacketKind, Receiver, Registry, RtpArrival, Sender, SenderEvent, Setup};
    use crate::{Outgoing, Signals};
    use paceline_units::{DataSize, Ecn, Rate, StreamId};
    use paceline_wire::CompoundWriter;

    /// Each controller whose receive half sends messages exceeds its start rate over RTP with declared SSRCs: every message is taken.
    #[test]
    fn messages_of_every_receive_half_are_taken() {
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
        let mut tried = 0;
        for entry in Registry::standard().iter() {
            let build = || entry.build(&setup, &[]).unwrap();
            let Some(kind) = build().needs().messages else { continue };
            let (mut sender, _): (Sender<()>, _) = build().endpoints(&setup);
            sender.add_ssrcs(StreamId(0), 7, 8, 0);
            let mut receiver = Receiver::for_rtp(&mut build(), [1, 7], FeedbackFormats::default(), Signals::disabled());
            let (size, mut written) = (DataSize::from_bytes(500), 0);
            for n in 0..1000u16 {
                let sent = Time::from_millis(10 * i64::from(n));
                let remote = RemoteTime::from_millis(10 * i64::from(n) + 30);
                let number = sender.handle_sent(sent, &Outgoing::new(size, StreamId(0), PacketKind::Media));
                sender.handle_rtp_sent(number, 7, n);
                let header = PacketHead::new(number, sent, 900 * u32::from(n)).rtp_header(7, n);
                receiver.handle_rtp(remote, &header, &RtpArrival::new(PacketKind::Media, size, Ecn::NotEct));
                receiver.handle_timeout(remote);
                let mut buffer = [0; 1200];
                while let Some(len) = receiver.poll_rtcp(remote, &mut buffer).unwrap() {
                    written += 1;
                    sender.handle_rtcp(sent + TimeDelta::from_millis(60), &buffer[..len]).unwrap();
                }
            }
            assert_eq!(sender.rejected_packets().1, 0, "{}: {kind:?}, {written} compounds", entry.name());
            assert!(written >= 9, "{}: {written}", entry.name());
            tried += 1;
        }
        assert!(tried >= 8, "{tried} controllers");
    }

    /// One packet in ten is lost on a path of 30 ms each way, and a sender report goes with each fiftieth: the reports say so.
    #[test]
    fn reports_have_losses_and_round_trip_times() {
        let ms = TimeDelta::from_millis;
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
        let build = || Registry::standard().build("gcc-2016", &setup).unwrap();
        let (mut sender, _): (Sender<()>, _) = build().endpoints(&setup);
        sender.set_ntp_origin(1_000_000_000);
        sender.add_ssrcs(StreamId(0), 7, 8, 100);
        let mut receiver = Receiver::for_rtp(&mut build(), [1, 7], FeedbackFormats::default(), Signals::disabled());
        let size = DataSize::from_bytes(1000);
        let (mut losses, mut round_trips) = (Vec::new(), Vec::new());
        for n in 0..400u16 {
            let sent = Time::from_millis(10 * i64::from(n));
            let remote = RemoteTime::from_millis(10 * i64::from(n) + 5030);
            let number = sender.handle_sent(sent, &Outgoing::new(size, StreamId(0), PacketKind::Media));
            sender.handle_rtp_sent(number, 7, 100 + n);
            let mut buffer = [0; 1200];
            if n % 50 == 0 {
                let mut writer = CompoundWriter::new(&mut buffer);
                writer.sender_report(7, ntp::from_nanos(1_000_000_000 + sent.as_nanos() as u64), 0, 0, 0, &[]).unwrap();
                let len = writer.finish();
                receiver.handle_rtcp(remote, &buffer[..len]).unwrap();
            }
            if n % 10 != 5 {
                let header = PacketHead::new(number, sent, 0).rtp_header(7, 100 + n);
                let arrival = RtpArrival::new(PacketKind::Media, size, Ecn::NotEct);
                receiver.handle_rtp(remote, &header, &arrival);
                let forged = RtpHeader { ssrc: 9, ..header };
                receiver.handle_rtp(remote, &forged, &arrival);
            }
            receiver.handle_timeout(remote);
            assert!(receiver.poll_rtcp(remote, &mut [0; 199]).is_err(), "and nothing of the report is lost");
            while let Some(len) = receiver.poll_rtcp(remote, &mut buffer).unwrap() {
                sender.handle_rtcp(sent + ms(60), &buffer[..len]).unwrap();
            }
            while let Some(event) = sender.poll_event() {
                match event {
                    SenderEvent::FractionLost(fraction) => losses.push(fraction),
                    SenderEvent::RoundTrip(rtt) => round_trips.push(rtt),
                    _ => {}
                }
            }
        }
        assert_eq!(losses.len(), 3, "a report each second: {losses:?}");
        assert!(losses.iter().all(|lost| (0.08..0.11).contains(&lost.get())), "{losses:?}");
        assert!(
            round_trips.len() >= 3 && round_trips.iter().all(|rtt| (*rtt - ms(60)).abs() < ms(1)),
            "{round_trips:?}"
        );
    }
}
