// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call between two ends of `rtc` over a link of `paceline-netsim`, in virtual time.

use crate::controller::{OVERHEAD, SharedController};
use crate::peer::Peer;
use paceline::Setup;
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::link::{Capacity, CapacityEnd, Descriptor, HopPlan, Link, Output, Schedule};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, RandomStreams, Rate, Time, TimeDelta};
use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DELAY: TimeDelta = TimeDelta::from_millis(20);
const QUEUE: TimeDelta = TimeDelta::from_millis(300);
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / 30);
const SECOND: TimeDelta = TimeDelta::from_secs(1);
/// The payload of a packet, and the bytes around it: RTP with one extension, and what `rtc` does not count.
const PAYLOAD: DataSize = DataSize::from_bytes(1100);
const HEADERS: DataSize = DataSize::from_bytes(12 + 8 + OVERHEAD.as_bytes());
/// The least step of time after a timeout. A time that `rtc` computes in floating point may be a little too early.
const STEP: TimeDelta = TimeDelta::from_micros(10);
/// The longest time until both ends are connected.
const CONNECT: TimeDelta = TimeDelta::from_secs(5);

/// One second of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// The controller's target at the end.
    pub target: Rate,
    /// The bytes that arrived at the receiver.
    pub received: DataSize,
    /// The longest time that a packet waited in the queue.
    pub queue_max: TimeDelta,
    /// The packets that were dropped.
    pub dropped: u32,
}

/// One direction of the path, with the datagrams that are on it.
struct Direction {
    link: Link,
    datagrams: VecDeque<(u32, Vec<u8>)>,
    next: u32,
}

/// The capacity over time.
pub type Capacities = [(Time, Rate)];

/// Makes a call of this length with a controller. Returns its seconds, of which the first contains the connection.
///
/// # Errors
/// Returns an error if the controller cannot be built or the ends do not connect.
pub fn call(name: &str, capacity: &Capacities, seconds: usize) -> Result<Vec<Second>, Box<dyn Error>> {
    let (min, max) = (Rate::from_kbps(50), Rate::from_kbps(10_000));
    // Only the origin of time, which `rtc` cannot express otherwise: the call does not depend on it.
    #[allow(clippy::disallowed_methods, reason = "`Instant` has no other constructor")]
    let start = Instant::now();
    let (controller, feedback) = SharedController::new(name, &Setup::new(Rate::from_kbps(500), min, max), start)?;
    let addresses: [SocketAddr; 2] = ["10.0.0.1:5000".parse()?, "10.0.0.2:5000".parse()?];
    let interval = Duration::from_nanos(feedback.interval.as_nanos() as u64);
    let mut peers = [Peer::sender(start, addresses[0], &controller)?, Peer::receiver(start, addresses[1], interval)?];
    let [sender, receiver] = &mut peers;
    Peer::signal(start, sender, receiver)?;
    let mut path = [Direction::new(Some(capacity), "forward")?, Direction::new(None, "reverse")?];

    let at = |time: Time| start + Duration::from_nanos(time.as_nanos() as u64);
    let (mut now, mut next_frame, mut frames) = (Time::ZERO, Time::MAX, 0);
    let (mut log, mut end_of_second) = (vec![Second::default()], Time::ZERO + SECOND);
    loop {
        if next_frame == Time::MAX && peers.iter().all(Peer::is_connected) {
            next_frame = now;
        } else if next_frame == Time::MAX && now > Time::ZERO + CONNECT {
            return Err("the ends do not connect".into());
        }
        for end in 0..2 {
            let address = peers[1 - end].address();
            for (left, bytes) in path[1 - end].poll(now, log.last_mut().filter(|_| end == 1)) {
                peers[end].handle_datagram(at(left), address, &bytes);
            }
        }
        if now >= next_frame {
            next_frame += FRAME_INTERVAL;
            controller.handle_stream(at(now), min, max);
            let payloads = payloads(controller.decision().target);
            peers[0].send_frame(at(now), frames * 3000, &payloads)?;
            let sizes: Vec<_> = payloads.iter().map(|bytes| DataSize::from_bytes(*bytes as u64) + HEADERS).collect();
            controller.handle_frame(at(now), &sizes);
            frames += 1;
        }
        for (peer, direction) in peers.iter_mut().zip(&mut path) {
            if peer.poll_timeout().is_some_and(|due| due <= at(now)) {
                peer.handle_timeout(at(now));
            }
            while let Some(datagram) = peer.poll_transmit() {
                direction.send(now, &datagram);
            }
        }
        if now >= end_of_second {
            end_of_second += SECOND;
            log.last_mut().expect("it has a second").target = controller.decision().target;
            if log.len() == seconds {
                return Ok(log);
            }
            log.push(Second::default());
        }
        let time = |due: Instant| Time::from_nanos(due.saturating_duration_since(start).as_nanos() as i64);
        let timeouts = peers.iter_mut().filter_map(|peer| peer.poll_timeout().map(time)).map(|due| due.max(now + STEP));
        let links = path.iter().filter_map(|direction| direction.link.poll_timeout());
        let next = timeouts.chain(links).chain([next_frame, end_of_second]).min().expect("it is not empty");
        now = next.max(now);
    }
}

/// Returns the payloads of a frame at this rate, which counts whole IP packets.
fn payloads(target: Rate) -> Vec<usize> {
    let frame = (target * FRAME_INTERVAL).as_bytes();
    let packets = frame.div_ceil((PAYLOAD + HEADERS).as_bytes()).max(1);
    let payload = frame.saturating_sub(packets * HEADERS.as_bytes()).max(packets);
    (0..packets).map(|n| ((payload * (n + 1) / packets) - (payload * n / packets)) as usize).collect()
}

impl Direction {
    fn new(capacity: Option<&Capacities>, name: &str) -> Result<Self, Box<dyn Error>> {
        let capacity = match capacity {
            Some(points) => {
                let schedule = Schedule::new(points.to_vec()).ok_or("the capacities are not in order")?;
                Some(Capacity::rates(schedule, CapacityEnd::Hold)?)
            }
            None => None,
        };
        let delay = Schedule::constant(DELAY);
        let hop = HopPlan { capacity, delay, ..HopPlan::new(name, QueueLimit::DrainTime(QUEUE)) };
        let link = Link::new(hop, &RandomStreams::new(1));
        Ok(Self { link, datagrams: VecDeque::new(), next: 0 })
    }

    fn send(&mut self, now: Time, datagram: &[u8]) {
        let size = DataSize::from_bytes(datagram.len() as u64 + 28);
        let packet = Descriptor { id: self.next, flow: FlowId(0), size, ecn: Ecn::NotEct, dscp: Dscp::default() };
        self.datagrams.push_back((self.next, datagram.to_vec()));
        self.next += 1;
        self.link.handle_packet(now, packet);
    }

    /// Returns the datagrams that have arrived by `now`, with their times. Adds them to the second.
    fn poll(&mut self, now: Time, mut second: Option<&mut Second>) -> Vec<(Time, Vec<u8>)> {
        let mut arrived = Vec::new();
        while let Some(output) = self.link.poll_output(now) {
            let position = self.datagrams.iter().position(|(id, _)| *id == output.packet().id);
            let datagram = position.and_then(|position| self.datagrams.remove(position));
            match (&output, second.as_deref_mut()) {
                (Output::Delivered { packet, waited, .. }, Some(second)) => {
                    second.received += packet.size;
                    second.queue_max = second.queue_max.max(*waited);
                }
                (Output::Dropped { .. }, Some(second)) => second.dropped += 1,
                _ => {}
            }
            if matches!(output, Output::Delivered { .. }) {
                arrived.extend(datagram.map(|(_, bytes)| (output.due(), bytes)));
            }
        }
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 2 to 1 Mbit/s after 20 s, for 30 s.
    const CAPACITY: [(Time, Rate); 2] =
        [(Time::ZERO, Rate::from_kbps(2000)), (Time::from_secs(20), Rate::from_kbps(1000))];

    /// Returns the mean received rate of these seconds in kbit/s, and the longest time in the queue in ms.
    fn mean(seconds: &[Second]) -> (u64, f64) {
        let received: u64 = seconds.iter().map(|second| second.received.as_bits() / 1000).sum();
        let queue = seconds.iter().map(|second| second.queue_max).max().expect("there are seconds");
        (received / seconds.len() as u64, queue.as_millis_f64())
    }

    /// A sender without a controller stays at 500 kbit/s, or fills the queue of 300 ms. NADA keeps a queue of some 40 ms and finds
    /// the capacity within seconds. `googcc` starts at 500 kbit/s and grows by 8 % per second, because no probes are sent: it
    /// has about 500 × 1.08^15 kbit/s after 15 s.
    #[test]
    fn the_rate_follows_the_link() {
        for (name, before, after, queue) in
            [("nada-sender", 1900..=2010, 900..=1010, 20.0..=120.0), ("googcc", 1200..=2000, 700..=1010, 0.1..=60.0)]
        {
            let call = call(name, &CAPACITY, 30).unwrap();
            let (rate, waited) = mean(&call[15..20]);
            assert!(before.contains(&rate) && queue.contains(&waited), "{name}: {rate} kbit/s, {waited} ms");
            let (rate, waited) = mean(&call[26..30]);
            assert!(after.contains(&rate) && queue.contains(&waited), "{name}: {rate} kbit/s, {waited} ms");
        }
    }

    /// DTLS draws keys at random, so a handshake may take a few bytes more. The media does not depend on it.
    #[test]
    fn two_calls_are_equal_after_the_handshake() {
        let [first, second] = [(), ()].map(|()| call("nada-sender", &CAPACITY, 6).unwrap());
        for (one, other) in first.iter().zip(&second).skip(1) {
            assert!(one.target.as_bps().abs_diff(other.target.as_bps()) <= one.target.as_bps() / 100);
        }
    }

    #[test]
    fn a_frame_has_the_size_of_its_share_of_the_target() {
        for kbps in [50, 300, 2500] {
            let target = Rate::from_kbps(kbps);
            let payloads = payloads(target);
            let size = payloads.iter().map(|payload| *payload as u64 + HEADERS.as_bytes()).sum::<u64>();
            assert!(size.abs_diff((target * FRAME_INTERVAL).as_bytes()) <= 1, "{payloads:?}");
            assert!(payloads.iter().all(|payload| (1..=PAYLOAD.as_bytes() as usize).contains(payload)), "{payloads:?}");
        }
    }
}
