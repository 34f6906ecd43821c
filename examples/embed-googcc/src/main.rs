//! `googcc` in a program of one's own (`sender.rs`), on a link in virtual time: `cargo run -p embed-googcc`.

mod sender;

use paceline::PacketKind;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use paceline_wire::{CompoundWriter, TWCC_TICK};
use sender::TwccSender;
use std::collections::VecDeque;
use std::error::Error;

const DELAY: TimeDelta = TimeDelta::from_millis(20);
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(33);
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const PACKET: u64 = 1200;

fn main() -> Result<(), Box<dyn Error>> {
    let (targets, padding) = call(Rate::from_kbps(3000), 10)?;
    println!("target on a link of 3 Mbit/s, kbit/s, and {padding} packets of padding in probes:");
    for (second, target) in targets.iter().enumerate() {
        println!("{:3} s {:6}", second + 1, target.as_bps() / 1000);
    }
    Ok(())
}

/// Sends video over a link of this capacity. Returns the target at the end of each second, and the number of padding
/// packets.
fn call(capacity: Rate, seconds: i64) -> Result<(Vec<Rate>, usize), Box<dyn Error>> {
    let limits = (Rate::from_kbps(50), Rate::from_kbps(10_000));
    let mut sender = TwccSender::new(Rate::from_kbps(300), limits.0, limits.1)?;
    let (mut now, mut next_frame, mut next_feedback) = (Time::ZERO, Time::ZERO, Time::ZERO + FEEDBACK_INTERVAL);
    let mut link_free = Time::ZERO;
    let mut arrivals: VecDeque<(u16, Time)> = VecDeque::new();
    let mut feedback: VecDeque<(Time, Vec<u8>)> = VecDeque::new();
    let (mut count, mut targets, mut padding) = (0, Vec::new(), 0);
    while now < Time::from_secs(seconds) {
        if now >= next_frame {
            next_frame += FRAME_INTERVAL;
            let bytes = (sender.target() * FRAME_INTERVAL).as_bytes();
            let last = DataSize::from_bytes(bytes % PACKET).max(DataSize::from_bytes(60));
            let whole = (0..bytes / PACKET).map(|_| DataSize::from_bytes(PACKET));
            sender.handle_frame(now, &whole.chain([last]).collect::<Vec<_>>(), limits);
        }
        while let Some((_, datagram)) = feedback.pop_front_if(|(at, _)| *at <= now) {
            sender.handle_rtcp(now, &datagram);
        }
        sender.handle_timeout(now);
        while let Some(packet) = sender.poll_transmit(now) {
            padding += usize::from(packet.kind == PacketKind::Padding);
            link_free = link_free.max(now) + packet.size / capacity;
            arrivals.push_back((packet.sequence, link_free + DELAY));
        }
        if now >= next_feedback {
            next_feedback += FEEDBACK_INTERVAL;
            let arrived = arrivals.partition_point(|(_, at)| *at <= now);
            let reported: Vec<(u16, Time)> = arrivals.drain(..arrived).collect();
            if let Some((base, _)) = reported.first() {
                feedback.push_back((now + DELAY, write_feedback(*base, count, &reported)));
                count = u8::wrapping_add(count, 1);
            }
        }
        if now >= Time::from_secs(targets.len() as i64 + 1) {
            targets.push(sender.target());
        }
        let due = sender.poll_timeout().into_iter().chain(feedback.front().map(|(at, _)| *at));
        now = due.chain([next_frame, next_feedback]).min().expect("frames continue").max(now);
    }
    targets.push(sender.target());
    Ok((targets, padding))
}

/// Writes what the receiver sends: the arrival of each packet.
fn write_feedback(base: u16, count: u8, reported: &[(u16, Time)]) -> Vec<u8> {
    let mut buffer = [0; 1200];
    let ticks: Vec<Option<i64>> = reported.iter().map(|(_, at)| Some(at.as_nanos() / TWCC_TICK.as_nanos())).collect();
    let mut writer = CompoundWriter::new(&mut buffer);
    writer.transport_feedback(1, 2, base, count, &ticks).expect("the buffer has room for it");
    let len = writer.finish();
    buffer[..len].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes find the link within a second, and the rate stays near it: from two thirds, the result of the first probes, to a
    /// little more, because the target may exceed the link until over-use is found.
    #[test]
    fn the_sender_uses_the_link() {
        let (targets, padding) = call(Rate::from_kbps(3000), 20).unwrap();
        assert!((1..500).contains(&padding), "{padding} packets of padding");
        let kbps = |rate: &Rate| rate.as_bps() / 1000;
        assert!((2000..=3100).contains(&kbps(&targets[0])), "{targets:?}");
        let mean = targets[5..].iter().map(kbps).sum::<u64>() / (targets.len() - 5) as u64;
        assert!((2100..=3050).contains(&mean), "{targets:?}");
    }

    /// A valid message, cut at each length and with each byte inverted, about packets that were never sent.
    #[test]
    fn damaged_feedback_is_ignored() {
        let reported: Vec<(u16, Time)> = (0..20).map(|n| (n, Time::from_millis(i64::from(n)))).collect();
        let valid = write_feedback(0, 0, &reported);
        let mut sender = TwccSender::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(1000)).unwrap();
        for n in 0..valid.len() {
            sender.handle_rtcp(Time::from_millis(5), &valid[..n]);
            let mut inverted = valid.clone();
            inverted[n] ^= 0xff;
            sender.handle_rtcp(Time::from_millis(5), &inverted);
        }
        sender.handle_rtcp(Time::from_millis(5), &valid);
        assert_eq!(sender.target(), Rate::from_kbps(300));
    }
}
