//! A controller alone: what its halves are told of packets that pass a queue that comes and goes.

use paceline::{
    Arrival, Feedback, FeedbackKind, MediaKind, PacketKind, PacketReport, ReceiveHalf, Registry, SendHalf, SentPacket,
    Setup, Signals,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::hint::black_box;

/// What happens to a packet, the same for every controller: 1200 bytes each 4.8 ms (2 Mbit/s), 25 ms of path and up to
/// 40 ms of queue, one in 500 lost; told in messages each 50 ms.
#[derive(Clone, Copy, Debug)]
pub struct Scripted {
    /// Its number.
    pub number: u64,
    /// When it leaves.
    pub sent: Time,
    /// When it arrives, unless it is lost.
    pub arrival: Option<RemoteTime>,
    /// Whether a message with all packets up to this one comes 25 ms after it left.
    pub told: bool,
}

/// Size of each packet.
pub const PACKET: DataSize = DataSize::from_bytes(1200);

impl Scripted {
    /// The packet of this number.
    pub fn new(number: u64) -> Self {
        let sent = Time::from_nanos(number as i64 * 4_800_000);
        // Each 10 s the queue fills for 1 s and drains for 3, with a tremor of half a millisecond.
        let phase = (sent.as_nanos() / 1_000_000) % 10_000;
        let queue_us = match phase {
            0..1000 => phase * 40,
            1000..4000 => (4000 - phase) * 40 / 3,
            _ => 0,
        } + (number as i64 * 7919) % 500;
        let passed = TimeDelta::from_millis(25) + TimeDelta::from_micros(queue_us / 250 * 250);
        let arrival = RemoteTime::from_nanos(sent.as_nanos()) + passed;
        let message = |n: u64| n as i64 * 4_800_000 / 50_000_000;
        Self {
            number,
            sent,
            arrival: (number % 500 != 3).then_some(arrival),
            told: message(number + 1) > message(number),
        }
    }
}

/// A controller's halves under the script.
pub struct SendLoop {
    half: Box<dyn SendHalf>,
    /// What watches the arrivals, and speaks to the send half as soon as it has something to say.
    receive: Option<Box<dyn ReceiveHalf>>,
    per_packet: bool,
    signals: Signals,
    reports: Vec<PacketReport>,
    packets: u64,
}

impl SendLoop {
    /// Fresh halves of this controller, which has one at the sender.
    pub fn new(registry: &Registry, controller: &str) -> Self {
        let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(100), max: Rate::from_kbps(2500) };
        let entry = registry.get(controller).expect("it is standard");
        let controller = entry.build(&setup, &[]).expect("its defaults are sound");
        Self {
            half: controller.send.expect("it has one"),
            receive: controller.receive,
            per_packet: controller.feedback != FeedbackKind::None,
            signals: Signals::unheard(),
            reports: Vec::with_capacity(16),
            packets: 0,
        }
    }

    /// The next packet leaves; what is due by then happens, and what is to be done is asked as a flow asks it.
    pub fn step(&mut self) {
        let packet = Scripted::new(self.packets);
        self.packets += 1;
        let (sequence, sent, size) = (packet.number, packet.sent, PACKET);
        while self.half.poll_timeout() <= sent {
            self.half.handle_timeout(sent, &mut self.signals);
        }
        self.half.handle_sent(sent, &SentPacket { sequence, size, stream: StreamId(0), kind: PacketKind::Media });
        black_box(self.half.decision());
        if let Some(arrival) = packet.arrival {
            self.arrive(&packet, arrival);
        }
        if !self.per_packet {
            return;
        }
        self.reports.push(PacketReport { sequence, sent, size, arrival: packet.arrival, ecn: Ecn::NotEct });
        if packet.told {
            let outstanding = DataSize::from_bytes(10_000);
            let feedback = Feedback { packets: &self.reports, outstanding, after_highest: outstanding };
            self.half.handle_feedback(sent + TimeDelta::from_millis(25), &feedback, &mut self.signals);
            black_box(self.half.decision());
            self.reports.clear();
        }
    }

    fn arrive(&mut self, packet: &Scripted, now: RemoteTime) {
        let Some(receive) = &mut self.receive else { return };
        let arrival = Arrival {
            sent: Some(packet.sent),
            timestamp: (packet.number / 7 * 3000) as u32,
            sequence: packet.number as u16,
            stream: StreamId(0),
            media: MediaKind::Video,
            kind: PacketKind::Media,
            size: PACKET,
            ecn: Ecn::NotEct,
        };
        receive.handle_arrival(now, &arrival, &mut self.signals);
        if receive.poll_timeout() <= now {
            receive.handle_timeout(now, &mut self.signals);
        }
        while let Some(message) = receive.poll_message(now) {
            self.half.handle_message(packet.sent + TimeDelta::from_millis(25), &message, &mut self.signals);
            black_box(self.half.decision());
        }
    }
}
