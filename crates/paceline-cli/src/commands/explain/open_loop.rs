// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target of another controller that receives the reports of the recorded packets: an open loop.
//!
//! Packets are spread evenly over each interval of the model, their delays from the lowest to the highest of the interval, and the
//! last ones are the lost ones. Reports come where the recorded ones did.

use paceline::{Entry, Event, Feedback, PacketReport, RoundTrip, SentPacket, Setup, Signals, StreamState};
use paceline_explain::model::{Flow, Quantity};
use paceline_netsim::ControllerFailure;
use paceline_units::{DataSize, Rate, RemoteTime, StreamId, Time, TimeDelta};

/// The lowest target: the default of scenarios.
const MIN: Rate = Rate::from_kbps(30);
/// The highest target, as a multiple of the highest recorded rate: the controller may want more than was sent. Assumed.
const MAX: f64 = 2.0;
/// Packets of an interval at most.
const PACKETS_MAX: u32 = 2000;
/// The length of the first part that does not count: the controller starts. Assumed.
const STARTS: TimeDelta = TimeDelta::from_secs(5);

/// Returns the mean target of a controller, bit/s; `None` if the input has no delays or reports, or the controller needs messages of
/// a receive half. The result is an error if the controller fails.
pub(super) fn mean_target(
    flow: &Flow,
    entry: &Entry,
    rtt_s: f64,
    highest_bps: f64,
) -> Option<Result<f64, ControllerFailure>> {
    let quantities =
        [Quantity::SentRate, Quantity::DelayLow, Quantity::DelayHigh, Quantity::PacketsSent, Quantity::PacketsLost];
    let [sent, low, high, count, lost] = quantities.map(|quantity| flow.get(quantity));
    let (sent, low, high, count, lost) = (sent?, low?, high?, count?, lost?);
    let feedback = flow.get(Quantity::Feedback)?;
    let start = sent.mean(flow.span.0, flow.span.0 + TimeDelta::from_secs(1))?;
    let setup = Setup::new(Rate::from_bps_f64(start).max(MIN), MIN, Rate::from_bps_f64(MAX * highest_bps).max(MIN));
    let mut pair = entry.build(&setup, &[]).ok()?;
    if pair.receive.is_some() || pair.feedback.is_none() {
        return None;
    }
    let half = pair.send.as_mut()?;
    let mut signals = Signals::disabled();
    let (owd, step) = (TimeDelta::from_secs_f64(rtt_s / 2.0), paceline_explain::packets::BIN);
    let (mut sequence, mut waiting, mut rtt) = (0u64, Vec::new(), None);
    let (mut sum, mut number) = (0.0, 0.0);
    for (begin, packets) in &count.points {
        let packets = (*packets as u32).min(PACKETS_MAX);
        let bytes = sent.at(*begin).unwrap_or(0.0) * step.as_secs_f64() / 8.0;
        let arrived = packets.saturating_sub(lost.at(*begin).unwrap_or(0.0) as u32);
        let (least, most) = (low.at(*begin).unwrap_or(0.0), high.at(*begin).unwrap_or(0.0));
        for index in 0..packets {
            let at = *begin + TimeDelta::from_nanos(step.as_nanos() * i64::from(index) / i64::from(packets));
            let size = DataSize::from_bytes((bytes / f64::from(packets)).clamp(40.0, 1500.0) as u64);
            while half.poll_timeout().is_some_and(|due| due <= at) {
                half.handle_event(at, &Event::Timeout, &mut signals);
            }
            half.handle_event(at, &Event::Stream(&StreamState::new(StreamId(0), DataSize::ZERO)), &mut signals);
            half.handle_event(at, &Event::Sent(&SentPacket::new(sequence, size)), &mut signals);
            let share = f64::from(index) / f64::from(packets.max(2) - 1);
            let delay = owd + TimeDelta::from_secs_f64(least + (most - least) * share);
            let arrival = (index < arrived).then(|| RemoteTime::from_nanos((at + delay).since(Time::ZERO).as_nanos()));
            waiting.push(PacketReport::new(sequence, at, size, arrival));
            sequence += 1;
        }
        let now = *begin + step;
        if feedback.at(*begin).unwrap_or(0.0) > 0.0 {
            // Reports of packets that are still on the way follow later.
            let limit = RemoteTime::from_nanos((now - owd).since(Time::ZERO).as_nanos());
            let is_due = |report: &PacketReport| report.arrival.unwrap_or(RemoteTime::from_nanos(0)) <= limit;
            let due: Vec<PacketReport> = waiting.iter().filter(|report| is_due(report)).copied().collect();
            waiting.retain(|report| !is_due(report));
            if !due.is_empty() {
                let outstanding = waiting.iter().map(|report| report.size.as_bytes()).sum();
                let outstanding = DataSize::from_bytes(outstanding);
                let round_trip = RoundTrip::after(rtt, owd * 2 + TimeDelta::from_secs_f64(least));
                rtt = Some(round_trip);
                half.handle_event(now, &Event::RoundTrip(&round_trip), &mut signals);
                half.handle_event(now, &Event::Feedback(&Feedback::new(&due, outstanding, outstanding)), &mut signals);
                // No probe is in the recorded packets.
                while half.poll_probe(now).is_some() {}
            }
        }
        if let Some(failure) = half.poll_failure() {
            let (flow, controller) = (flow.name.clone(), entry.name().to_owned());
            return Some(Err(ControllerFailure { flow, controller, at: now, failure }));
        }
        if now - flow.span.0 >= STARTS {
            sum += half.decision().target.as_bps_f64();
            number += 1.0;
        }
    }
    (number > 0.0).then_some(Ok(sum / number))
}
