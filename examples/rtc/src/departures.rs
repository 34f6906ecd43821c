//! What the estimator of `rtc` does not see: packets as they leave, and receiver reports. An interceptor next to the wire
//! reads both, and passes changes of the pacing rate on at once, not only with feedback.

use crate::controller::SharedController;
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

/// What one receiver report says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    /// The loss since the last report; `None` if they cover less than 20 packets.
    pub fraction_lost: Option<Fraction>,
    /// The round-trip time (RFC 3550, section 6.4.1).
    pub rtt: Option<TimeDelta>,
}

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

    /// Tells the pacer a new rate, in a packet that carries nothing else.
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
