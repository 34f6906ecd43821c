// SPDX-License-Identifier: MIT OR Apache-2.0
use paceline::{PacketHead, Registry, Setup};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};
use std::collections::VecDeque;

const FRAME: TimeDelta = TimeDelta::from_nanos(33_333_333);
const DELAY: TimeDelta = TimeDelta::from_millis(25);

/// Sends video for some seconds. The encoder makes exactly the target.
pub fn call(name: &str, link: &mut Link, seconds: i64) -> Result<(), Box<dyn std::error::Error>> {
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(10_000));
    let (mut sender, mut receiver) = Registry::standard().build(name, &setup)?.endpoints(&setup);
    let (mut now, mut next_frame, mut reports) = (Time::ZERO, Time::ZERO, VecDeque::new());
    while now < Time::from_secs(seconds) {
        let remote = RemoteTime::from_nanos(now.as_nanos()); // of another host: any clock
        sender.handle_timeout(now);
        if next_frame <= now {
            next_frame += FRAME;
            let bytes = (sender.target() * FRAME).as_bytes();
            let count = bytes.div_ceil(1228); // 1200 bytes and the headers of IP and UDP
            let packets = (0..count).map(|n| (n, DataSize::from_bytes(bytes / count)));
            let _ = sender.push_video(now, false, packets); // if it is dropped, make a key frame
        }
        while let Some(packet) = sender.poll_transmit(now) {
            link.send(now, packet.head, packet.size, packet.ecn);
        }
        while let Some((head, size, ecn)) = link.receive(now) {
            receiver.handle_packet(remote, &head, size, ecn);
        }
        receiver.handle_timeout(remote);
        while let Some(report) = receiver.poll_report(remote) {
            reports.push_back((now + DELAY, report));
        }
        while let Some((_, report)) = reports.pop_front_if(|(at, _)| *at <= now) {
            sender.handle_report(now, &report);
        }
        let report = reports.front().map(|(at, _)| *at);
        let receiver_due = receiver.poll_timeout().map(|at| Time::from_nanos(at.as_nanos()));
        let due = [sender.poll_timeout(), receiver_due, report, link.due(), Some(next_frame)];
        now = due.into_iter().flatten().min().map_or(next_frame, |due| due.max(now + TimeDelta::from_micros(1)));
    }
    Ok(())
}

/// A link of 2 Mbit/s with a queue of 300 ms, which loses one packet in a hundred, at random.
pub struct Link {
    free: Time,
    /// The state of a generator of random numbers (xorshift, Marsaglia 2003).
    random: u64,
    packets: VecDeque<(Time, PacketHead, DataSize, Ecn)>,
    /// Departure, size and wait of each packet.
    departed: Vec<(Time, DataSize, TimeDelta)>,
}

impl Link {
    const CAPACITY: Rate = Rate::from_kbps(2000);
    const QUEUE: TimeDelta = TimeDelta::from_millis(300);

    pub fn new(seed: u64) -> Self {
        Self { free: Time::ZERO, random: seed, packets: VecDeque::new(), departed: Vec::new() }
    }

    fn send(&mut self, now: Time, head: PacketHead, size: DataSize, ecn: Ecn) {
        let wait = (self.free - now).max(TimeDelta::ZERO);
        if wait > Self::QUEUE {
            return;
        }
        self.free = now + wait + size / Self::CAPACITY;
        self.departed.push((self.free, size, wait));
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if !self.random.is_multiple_of(100) {
            self.packets.push_back((self.free + DELAY, head, size, ecn));
        }
    }

    fn receive(&mut self, now: Time) -> Option<(PacketHead, DataSize, Ecn)> {
        let (_, head, size, ecn) = self.packets.pop_front_if(|(at, ..)| *at <= now)?;
        Some((head, size, ecn))
    }

    fn due(&self) -> Option<Time> {
        self.packets.front().map(|(at, ..)| *at)
    }

    /// Returns the mean rate of the call and the mean wait of its packets.
    pub fn means(&self) -> (Rate, TimeDelta) {
        let end = self.departed.last().map_or(Time::ZERO, |(at, ..)| *at);
        let rate = Rate::from_size_and_time(self.departed.iter().map(|(_, size, _)| *size).sum(), end - Time::ZERO);
        let waits = self.departed.iter().fold(TimeDelta::ZERO, |sum, (_, _, wait)| sum + *wait);
        (rate, waits / self.departed.len().max(1) as i64)
    }
}
