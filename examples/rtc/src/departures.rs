// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the estimator of `rtc` does not see: packets as they leave, and receiver reports. An interceptor next to the wire
//! reads both, and passes changes of the pacing rate on at once, not only with feedback.

use crate::controller::{Reception, SharedController};
use paceline_units::{Fraction, TimeDelta};
use rtc::interceptor::{
    Attribute, AttributedPacket, BandwidthEstimator, Interceptor, Packet, Slot, StreamInfo, TaggedPacket,
};
use rtc::rtcp::receiver_report::ReceiverReport;
use rtc::rtcp::reception_report::ReceptionReport;
use rtc::rtcp::sender_report::SenderReport;
use rtc::sansio::Protocol;
use rtc::shared::error::Error;
use rtc::shared::marshal::MarshalSize;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

/// The packets that a report must cover before its loss is passed on.
const PACKETS_MIN: u32 = 20;
/// The number of sender reports that are kept, to find the round-trip time.
const SENDER_REPORTS: usize = 16;

/// The interceptor.
pub struct Departures {
    controller: SharedController,
    /// The SSRCs of the streams that are sent: `rtc` counts the packets of these.
    streams: BTreeSet<u32>,
    reports: SentReports,
    /// The pacing rate that the pacer knows.
    pacing: f64,
    read: VecDeque<TaggedPacket>,
    write: VecDeque<TaggedPacket>,
}

impl Departures {
    /// Returns the position in the chain of interceptors: packets have a transport-wide number, and the next station is the
    /// history of `rtc`, which therefore counts the same packets.
    pub fn slot() -> Slot {
        Slot::from((usize::from(Slot::CongestionControl) + usize::from(Slot::TwccSender)) / 2)
    }

    /// Creates it for a controller.
    pub fn new(controller: SharedController) -> Self {
        let pacing = controller.target_bitrate();
        let (read, write) = (VecDeque::new(), VecDeque::new());
        Self { controller, streams: BTreeSet::new(), reports: SentReports::default(), pacing, read, write }
    }

    /// Sets the rate of the pacer, in a packet that carries nothing else.
    fn follow(&mut self, now: Instant) {
        let pacing = self.controller.target_bitrate();
        if pacing != self.pacing {
            self.pacing = pacing;
            let rate = Attribute::TargetBitrateChanged { bits_per_second: pacing };
            let message = AttributedPacket::new(Packet::Rtcp(Vec::new())).with(rate);
            self.read.push_back(TaggedPacket { now, transport: Default::default(), message });
        }
    }

    fn handle_report(&mut self, now: Instant, blocks: &[ReceptionReport]) {
        for block in blocks.iter().filter(|block| self.streams.contains(&block.ssrc)) {
            let reception = self.reports.handle_block(now, block);
            self.controller.handle_reception(now, &reception);
        }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Departures {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtcp(compound) = &packet.message.packet {
            for rtcp in compound {
                if let Some(report) = rtcp.as_any().downcast_ref::<ReceiverReport>() {
                    self.handle_report(packet.now, &report.reports);
                } else if let Some(report) = rtcp.as_any().downcast_ref::<SenderReport>() {
                    self.handle_report(packet.now, &report.reports);
                }
            }
        }
        let now = packet.now;
        self.read.push_back(packet);
        self.follow(now);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.read.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        match &packet.message.packet {
            Packet::Rtp(rtp) if self.streams.contains(&rtp.header.ssrc) => {
                self.controller.handle_sent(packet.now, rtp.marshal_size());
            }
            Packet::Rtcp(compound) => compound
                .iter()
                .filter_map(|rtcp| rtcp.as_any().downcast_ref::<SenderReport>())
                .for_each(|report| self.reports.handle_sent(packet.now, report.ntp_time)),
            _ => {}
        }
        let now = packet.now;
        self.write.push_back(packet);
        self.follow(now);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.write.pop_front()
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.follow(now);
        Ok(())
    }
}

impl Interceptor for Departures {
    fn bind_local_stream(&mut self, info: &StreamInfo) {
        self.streams.insert(info.ssrc);
    }

    fn unbind_local_stream(&mut self, info: &StreamInfo) {
        self.streams.remove(&info.ssrc);
    }

    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}

/// The sender reports that were sent, and what receiver reports say since.
#[derive(Default)]
struct SentReports {
    /// The middle 32 bits of the NTP time of each, and when it left.
    sent: VecDeque<(u32, Instant)>,
    /// The highest sequence number of the last report that was passed on.
    highest: Option<u32>,
}

impl SentReports {
    fn handle_sent(&mut self, now: Instant, ntp: u64) {
        if self.sent.len() == SENDER_REPORTS {
            self.sent.pop_front();
        }
        self.sent.push_back(((ntp >> 16) as u32, now));
    }

    fn handle_block(&mut self, now: Instant, block: &ReceptionReport) -> Reception {
        let sent = self.sent.iter().find(|(ntp, _)| *ntp == block.last_sender_report && *ntp != 0);
        let rtt = sent.map(|(_, at)| {
            let elapsed = TimeDelta::from_nanos(now.saturating_duration_since(*at).as_nanos() as i64);
            let held = TimeDelta::from_nanos((i64::from(block.delay) * 1_000_000_000) >> 16);
            (elapsed - held).max(TimeDelta::ZERO)
        });
        let highest = block.last_sequence_number;
        let packets = self.highest.map(|before| highest.wrapping_sub(before));
        let is_enough = packets.is_none_or(|packets| packets >= PACKETS_MIN);
        if is_enough {
            self.highest = Some(highest);
        }
        Reception { fraction_lost: is_enough.then(|| Fraction::from_q8(block.fraction_lost)), rtt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Setup;
    use paceline_units::Rate;
    use rtc::interceptor::PacketReport;
    use std::time::Duration;

    fn start() -> Instant {
        #[allow(clippy::disallowed_methods, reason = "`Instant` has no other constructor")]
        Instant::now()
    }

    /// By hand: the report arrives 540 ms after the sender report left; the receiver held it for 0.5 s: 32768 / 65536.
    #[test]
    fn round_trip_time_excludes_the_delay_at_the_receiver() {
        let (mut reports, start) = (SentReports::default(), start());
        reports.handle_sent(start, 0x1234_5678_9abc_def0);
        let block = |last_sender_report, packets| ReceptionReport {
            last_sender_report,
            delay: 32_768,
            fraction_lost: 64,
            last_sequence_number: packets,
            ..Default::default()
        };
        let now = start + Duration::from_millis(540);
        let reception = reports.handle_block(now, &block(0x5678_9abc, 0xffff));
        assert_eq!(reception, Reception { fraction_lost: Fraction::new(0.25), rtt: Some(TimeDelta::from_millis(40)) });
        assert_eq!(reports.handle_block(now, &block(1, 0xffff + 19)), Reception { fraction_lost: None, rtt: None });
        let fraction_lost = Fraction::new(0.25);
        assert_eq!(reports.handle_block(now, &block(1, 0xffff + 20)), Reception { fraction_lost, rtt: None });
    }

    /// Returns the rates that reach the pacer.
    fn rates(departures: &mut Departures) -> Vec<f64> {
        let of = |packet: TaggedPacket| {
            let kind = Attribute::TargetBitrateChanged { bits_per_second: 0.0 };
            match packet.message.get(&kind) {
                Some(Attribute::TargetBitrateChanged { bits_per_second }) => Some(*bits_per_second),
                _ => None,
            }
        };
        std::iter::from_fn(|| departures.poll_read()).filter_map(of).collect()
    }

    /// The guard lowers the rate 3 s after the last feedback. By itself, `rtc` reads the estimator only when feedback arrives.
    #[test]
    fn the_pacer_slows_down_without_feedback() {
        let (kbps, start) = (Rate::from_kbps, start());
        let setup = Setup::new(kbps(1000), kbps(50), kbps(2000));
        let (mut controller, _) = SharedController::new("nada-sender", &setup, start).unwrap();
        let mut departures = Departures::new(controller.clone());
        let before = controller.target_bitrate();
        controller.handle_sent(start, 1000);
        let (departure, arrival) = (start, Some(Duration::from_millis(20)));
        let report = PacketReport {
            ssrc: 1,
            id: 0,
            rtp_sequence_number: 0,
            is_twcc: true,
            twcc_sequence_number: 0,
            size: 1000,
            arrived: true,
            departure,
            arrival,
            ecn: Default::default(),
        };
        controller.on_reports(start + Duration::from_millis(50), &[report]);
        departures.handle_timeout(start + Duration::from_millis(50)).unwrap();
        rates(&mut departures);
        for tenth in 1..100 {
            let now = start + Duration::from_millis(100 * tenth);
            controller.handle_sent(now, 1000);
            controller.handle_timeout(now);
            departures.handle_timeout(now).unwrap();
        }
        let rates = rates(&mut departures);
        assert!(rates.len() >= 3 && rates.is_sorted_by(|a, b| a > b), "{rates:?}");
        assert!(rates[rates.len() - 1] < before / 2.0, "{rates:?}, first {before}");
    }
}
