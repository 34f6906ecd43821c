//! What the sender does for an algorithm that paces: it measures delivery and keeps segments apart.

use super::{Phase, TcpSender};
use crate::tcp::congestion::{Repair, Sample};
use crate::tcp::delivery::Delivery;
use crate::tcp::pacing::Pacing;
use crate::tcp::scoreboard::Heard;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The state of it, of one connection after the other.
#[derive(Debug)]
pub(super) struct Paced {
    delivery: Delivery,
    pacing: Pacing,
}

impl Paced {
    pub fn new() -> Self {
        Self { delivery: Delivery::new(), pacing: Pacing::new() }
    }

    /// A connection begins.
    pub fn reset(&mut self) {
        self.delivery.reset();
        self.pacing = Pacing::new();
    }

    /// Segment `number` leaves at this pace, in bursts of so many; `idle`: nothing was in flight before.
    pub fn handle_sent(&mut self, now: Time, number: u64, payload: u64, idle: bool, (pace, burst): (Rate, u64)) {
        self.delivery.handle_sent(now, number, idle);
        self.pacing.handle_sent(now, DataSize::from_bytes(payload), pace, burst);
    }
}

impl TcpSender {
    /// The handshake is over; it took `round_trip`, if that is certain.
    pub(super) fn open(&mut self, now: Time, round_trip: Option<TimeDelta>) {
        let Some(Paced { delivery, .. }) = &mut self.paced else { return };
        if let Some(sample) = round_trip {
            delivery.handle_round_trip(sample);
        }
        self.congestion.handle_open(now, round_trip, &self.window);
    }

    /// Tells an algorithm that paces what an ACK told; it sets the window.
    pub(super) fn sample(&mut self, now: Time, heard: &Heard, round_trip: Option<TimeDelta>, pipe_before: u64) {
        let Some(Paced { delivery, .. }) = &mut self.paced else { return };
        if let Some(round_trip) = round_trip {
            delivery.handle_round_trip(round_trip);
        }
        let measured = delivery.handle_ack(now, heard, self.board.base());
        let bytes = DataSize::from_bytes;
        let sample = Sample {
            now,
            acked: bytes(measured.acked),
            lost: bytes(heard.lost),
            delivered: bytes(delivery.delivered()),
            rate: measured.rate.map(|(before, rate)| (bytes(before), rate)),
            limited: measured.limited,
            round_trip,
            srtt: self.round_trip.srtt(),
            pipe_before: bytes(pipe_before),
            pipe: bytes(self.board.pipe()),
            repair: match self.phase {
                Phase::Open => Repair::None,
                Phase::Recovery(_) => Repair::Recovery,
                Phase::Loss { .. } => Repair::Timeout,
            },
        };
        self.congestion.handle_sample(&sample, &mut self.window);
        if self.congestion.holds_back() {
            delivery.limit(self.board.pipe());
        }
    }

    /// Pacing holds back what the window would let go.
    pub(super) fn waits(&mut self, now: Time) -> bool {
        let Some(Paced { pacing, .. }) = &self.paced else { return false };
        let open = self.forced || self.board.pipe() + self.segment <= self.window.cwnd.as_bytes();
        let waits = now < pacing.next && open;
        self.release = if waits { pacing.next } else { Time::MAX };
        waits
    }

    /// Nothing leaves, though pacing would let it: rates do not count where that is for want of data.
    pub(super) fn handle_pause(&mut self, now: Time) {
        let Some(Paced { delivery, .. }) = &mut self.paced else { return };
        let wanting = self.board.next_new().is_none() || now >= self.stop;
        let room = self.board.pipe() + self.segment <= self.window.cwnd.as_bytes();
        if wanting && room && self.board.next_lost().is_none() {
            delivery.limit(self.board.pipe());
        }
    }
}
