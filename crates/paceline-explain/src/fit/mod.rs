// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline fit`: the path of a run as a scenario, from what its ends know.
//!
//! ```text
//! events --Collector--> Observation --fit--> PathFit --scenario::write--> scenario file
//! ```
//!
//! The model is one hop each way: a first-in, first-out queue, its capacity, a propagation delay, random loss. Hops, capacities and
//! drops that the simulator recorded are not read, so that a fit of a simulated run is worth as much as one of a real session.

pub mod capacity;
pub mod comparison;
pub mod input;
pub mod loss;
pub mod observation;
pub mod scenario;
mod statistics;

use capacity::{CapacityFit, Evidence};
use loss::{Fate, LossFit};
use observation::{Clocks, Observation, Packet};

/// Size of an RTCP sender report with an SDES chunk, and IPv4 and UDP headers, bits: RFC 3550, sections 6.4.1 and 6.5, with a name of 16
/// bytes.
const REPORT_BITS: f64 = (28.0 + 28.0 + 28.0) * 8.0;

/// The longest time from a sender report to the receiver report that refers to it, s: the RTCP interval of RFC 3550, section 6.2, is at
/// most 5 s × 1.5, and a round trip.
const REPORT_AGE_S: f64 = 8.0;

/// Wait above which a queue that lost packets counts as seen full, s. Assumed.
const FULL_WAIT_S: f64 = 0.005;

/// Share of the expected growth of the delay with the size of packets below which packets do not take their own time on the link. Assumed.
const GROWTH: f64 = 0.5;

/// The expected growth from which this is judged, s. Assumed.
const GROWTH_S: f64 = 0.001;

/// What is known of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFit {
    /// Capacity of the way from sender to receiver.
    pub capacity: CapacityFit,
    /// Whether packets take less time on the link than their size over the capacity. Then a bucket of tokens lets bursts pass, or the
    /// capacity is a lower bound.
    pub passes_at_once: bool,
    /// Propagation delay of that way, s; half of the round-trip time if the clocks are apart.
    pub forward_s: f64,
    /// Propagation delay of the way back, s; `None` if nothing shows it.
    pub reverse_s: Option<f64>,
    /// The longest wait in the queue, s, one packet included.
    pub longest_wait_s: f64,
    /// Whether packets were lost because the queue was full.
    pub was_full: bool,
    /// Losses on the way from sender to receiver.
    pub loss: LossFit,
    /// Losses on the way back; `None` if the input does not have its packets.
    pub reverse_loss: Option<LossFit>,
    /// Packets that arrived marked as congestion experienced.
    pub marked: u64,
}

pub fn fit(seen: &Observation) -> PathFit {
    let capacity = capacity::fit(&seen.forward);
    let (least, share) = least_delay(&seen.forward, &capacity);
    let waits: Vec<Option<f64>> = seen.forward.iter().map(|packet| wait(packet, &capacity, share, least)).collect();
    // A queue that is limited in bytes has another longest wait after a step of the capacity.
    let mut longest = vec![0.0f64; capacity.steps.len()];
    let part = |packet: &Packet| capacity.steps.partition_point(|(start, _)| *start <= packet.sent).saturating_sub(1);
    for (packet, wait) in seen.forward.iter().zip(&waits) {
        let longest = &mut longest[part(packet)];
        *longest = longest.max(wait.unwrap_or(0.0));
    }
    let fate = |(packet, wait): (&Packet, &Option<f64>)| Fate {
        wait: wait.map(|wait| if longest[part(packet)] > 0.0 { wait / longest[part(packet)] } else { 0.0 }),
    };
    let loss = loss::fit(&seen.forward.iter().zip(&waits).map(fate).collect::<Vec<_>>());
    let largest = seen.forward.iter().map(|packet| packet.bits).fold(0.0, f64::max);
    let longest_wait = longest.iter().copied().fold(0.0, f64::max);
    let lowest = capacity.steps.iter().map(|(_, bps)| *bps).fold(f64::INFINITY, f64::min);
    let (forward_s, reverse_s) = match seen.clocks {
        Clocks::Same => {
            let back = seen.reverse.iter().filter_map(Packet::delay).reduce(f64::min);
            (
                least.max(0.0),
                back.or_else(|| round_trip(seen, &waits, &capacity, share).map(|rtt| (rtt - least).max(0.0))),
            )
        }
        Clocks::Apart => match round_trip(seen, &waits, &capacity, share) {
            Some(rtt) => (rtt / 2.0, Some(rtt / 2.0)),
            None => (0.0, None),
        },
    };
    PathFit {
        was_full: loss.overflows > 0 && longest_wait > FULL_WAIT_S,
        longest_wait_s: longest_wait + largest / lowest,
        passes_at_once: share < GROWTH,
        forward_s,
        reverse_s,
        reverse_loss: (!seen.reverse.is_empty()).then(|| {
            let fates: Vec<Fate> = seen.reverse.iter().map(|p| Fate { wait: p.arrived.map(|_| 0.0) }).collect();
            loss::fit(&fates)
        }),
        loss,
        marked: seen.forward.iter().filter(|packet| packet.marked).count() as u64,
        capacity,
    }
}

/// Returns the smallest delay without the time that the packet itself takes on the link, s, and which share of size over capacity that
/// time is: 1, or less if the smallest delays of large packets show that.
fn least_delay(packets: &[Packet], capacity: &CapacityFit) -> (f64, f64) {
    let (small, large) = packets
        .iter()
        .filter(|packet| packet.arrived.is_some())
        .fold((f64::INFINITY, 0.0f64), |(small, large), packet| (small.min(packet.bits), large.max(packet.bits)));
    let own = |packet: &Packet| Some(packet.bits / capacity.highest_near(packet.arrived?));
    let least = |share: f64, from: f64, to: f64| {
        let sized = packets.iter().filter(|packet| (from..=to).contains(&packet.bits));
        sized.filter_map(|packet| Some(packet.delay()? - share * own(packet)?)).fold(f64::INFINITY, f64::min)
    };
    let middle = (small + large) / 2.0;
    let growth = least(0.0, middle, large) - least(0.0, small, middle);
    let fastest = capacity.steps.iter().map(|(_, bps)| *bps).fold(0.0, f64::max);
    let expected = (large - middle) / fastest;
    let share = if expected > GROWTH_S && growth < GROWTH * expected { (growth / expected).max(0.0) } else { 1.0 };
    (least(share, small, large), share)
}

/// Returns how long a packet waited for others, s; `None` if it was lost.
fn wait(packet: &Packet, capacity: &CapacityFit, share: f64, least: f64) -> Option<f64> {
    let arrived = packet.arrived?;
    Some((arrived - packet.sent - share * packet.bits / capacity.at(arrived) - least).max(0.0))
}

/// Returns the round-trip time without queues, and without the time of the reports on the link, s; `None` without reports. A report
/// waited at least as long as every packet since the earliest time at which its sender report may have been sent.
fn round_trip(seen: &Observation, waits: &[Option<f64>], capacity: &CapacityFit, share: f64) -> Option<f64> {
    let base = |(at, rtt): &(f64, f64)| {
        let from = seen.forward.partition_point(|packet| packet.sent < at - REPORT_AGE_S);
        let to = seen.forward.partition_point(|packet| packet.sent <= *at);
        let waited = waits[from..to].iter().flatten().copied().reduce(f64::min).unwrap_or(0.0);
        rtt - waited - share * REPORT_BITS / capacity.highest_near(*at)
    };
    seen.round_trips.iter().map(base).reduce(f64::min).map(|rtt| rtt.max(0.0))
}

impl PathFit {
    /// Returns whether the capacity was seen.
    pub fn has_capacity(&self) -> bool {
        matches!(self.capacity.evidence, Evidence::Waited { .. })
    }
}
