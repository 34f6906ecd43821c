// SPDX-License-Identifier: MIT OR Apache-2.0
//! The halves of a controller alone, with scripted packets over a varying queue.

use paceline::{Arrival, Event, Feedback, Guard, PacketReport, ReceiveHalf, Registry, SentPacket, Setup, Signals};
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};
use std::hint::black_box;

/// A scripted packet, the same for every controller: 1200 bytes every 4.8 ms (2 Mbit/s), 25 ms of propagation, up to 40 ms of
/// queuing delay, one of 500 lost, feedback every 50 ms.
#[derive(Clone, Copy, Debug)]
pub struct Scripted {
    /// The packet number.
    pub number: u64,
    /// The send time.
    pub sent: Time,
    /// The arrival time; `None` if lost.
    pub arrival: Option<RemoteTime>,
    /// Whether feedback about all packets up to this one arrives 25 ms after its send time.
    pub feedback_due: bool,
}

/// The size of each packet.
pub const PACKET: DataSize = DataSize::from_bytes(1200);

impl Scripted {
    /// Returns the packet with this number.
    pub fn new(number: u64) -> Self {
        let sent = Time::from_nanos(number as i64 * 4_800_000);
        // Every 10 s the queue fills for 1 s and drains for 3 s, with noise of half a millisecond.
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
            feedback_due: message(number + 1) > message(number),
        }
    }
}

/// The halves of a controller with the script.
pub struct SendLoop {
    half: Guard,
    decides_on_sent: bool,
    /// The receive half, whose messages go to the send half at once.
    receive: Option<Box<dyn ReceiveHalf>>,
    per_packet: bool,
    signals: Signals,
    reports: Vec<PacketReport>,
    packets: u64,
}

impl SendLoop {
    /// Returns new halves of this controller, which must have a send half.
    pub fn new(registry: &Registry, controller: &str) -> Self {
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(100), Rate::from_kbps(2500));
        let entry = registry.get(controller).expect("it is standard");
        let controller = entry.build(&setup, &[]).expect("its defaults are sound");
        let half = controller.send.expect("it has one");
        Self {
            decides_on_sent: half.decides_on_sent(),
            half,
            receive: controller.receive,
            per_packet: controller.feedback.is_some(),
            signals: Signals::disabled(),
            reports: Vec::with_capacity(16),
            packets: 0,
        }
    }

    /// Sends the next packet, handles what is due until then, and polls the controller as a flow does.
    pub fn step(&mut self) {
        let packet = Scripted::new(self.packets);
        self.packets += 1;
        let (sequence, sent, size) = (packet.number, packet.sent, PACKET);
        while self.half.poll_timeout().is_some_and(|due| due <= sent) {
            self.half.handle_event(sent, &Event::Timeout, &mut self.signals);
        }
        self.half.handle_event(sent, &Event::Sent(&SentPacket::new(sequence, size)), &mut self.signals);
        if self.decides_on_sent {
            black_box(self.half.decision());
        }
        if let Some(arrival) = packet.arrival {
            self.arrive(&packet, arrival);
        }
        if !self.per_packet {
            return;
        }
        self.reports.push(PacketReport::new(sequence, sent, size, packet.arrival));
        if packet.feedback_due {
            let outstanding = DataSize::from_bytes(10_000);
            let feedback = Feedback::new(&self.reports, outstanding, outstanding);
            self.half.handle_event(sent + TimeDelta::from_millis(25), &Event::Feedback(&feedback), &mut self.signals);
            black_box(self.half.decision());
            self.reports.clear();
        }
    }

    fn arrive(&mut self, packet: &Scripted, now: RemoteTime) {
        let Some(receive) = &mut self.receive else { return };
        let arrival =
            Arrival::new((packet.number / 7 * 3000) as u32, packet.number as u16, PACKET).with_sent(Some(packet.sent));
        receive.handle_arrival(now, &arrival, &mut self.signals);
        if receive.poll_timeout().is_some_and(|due| due <= now) {
            receive.handle_timeout(now, &mut self.signals);
        }
        while let Some(message) = receive.poll_message(now) {
            self.half.handle_event(
                packet.sent + TimeDelta::from_millis(25),
                &Event::Message(&message),
                &mut self.signals,
            );
            black_box(self.half.decision());
        }
    }
}
