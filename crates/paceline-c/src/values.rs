// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of C as values of the library. Every range is checked here.

use crate::status::{Failure, argument};
use paceline::{Bounds, Decision, PacketKind, Setup, Window};
use paceline_abi::{
    PACELINE_ECN_UNKNOWN, PACELINE_NEVER, PACELINE_WINDOW_AFTER_HIGHEST, PACELINE_WINDOW_NONE,
    PACELINE_WINDOW_OUTSTANDING, PacelineDecision, PacelineLimits,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The latest time, 2^62 ns (146 years), so that no sum of two times overflows.
const TIME_MAX: i64 = 1 << 62;
/// The highest rate, 10 Tbit/s.
const RATE_MAX: u64 = 10_000_000_000_000;
/// The largest packet: that of the length field of IPv4.
const PACKET_MAX: u64 = 65_535;
/// The longest round-trip time, an hour.
const RTT_MAX: TimeDelta = TimeDelta::from_secs(3600);

fn nanos(ns: i64, name: &str) -> Result<i64, Failure> {
    let valid = (0..=TIME_MAX).contains(&ns);
    valid.then_some(ns).ok_or_else(|| argument(format!("`{name}` must be from 0 to 2^62 ns, not {ns}")))
}

pub(crate) fn time(ns: i64) -> Result<Time, Failure> {
    nanos(ns, "now_ns").map(Time::from_nanos)
}

pub(crate) fn remote_time(ns: i64, name: &str) -> Result<RemoteTime, Failure> {
    nanos(ns, name).map(RemoteTime::from_nanos)
}

pub(crate) fn rate(bps: u64, name: &str) -> Result<Rate, Failure> {
    let valid = bps <= RATE_MAX;
    valid
        .then(|| Rate::from_bps(bps))
        .ok_or_else(|| argument(format!("`{name}` must be at most 10^13 bit/s, not {bps}")))
}

pub(crate) fn packet_size(bytes: u64) -> Result<DataSize, Failure> {
    let valid = (1..=PACKET_MAX).contains(&bytes);
    valid
        .then(|| DataSize::from_bytes(bytes))
        .ok_or_else(|| argument(format!("a packet has 1 to {PACKET_MAX} bytes, not {bytes}")))
}

pub(crate) fn rtt(ns: i64) -> Result<TimeDelta, Failure> {
    let rtt = TimeDelta::from_nanos(ns);
    let valid = rtt.is_positive() && rtt <= RTT_MAX;
    valid.then_some(rtt).ok_or_else(|| argument(format!("`rtt_ns` must be above 0 and at most an hour, not {ns}")))
}

pub(crate) fn kind(kind: u8) -> Result<PacketKind, Failure> {
    use PacketKind::*;
    let kinds = [Media, Retransmission, Fec, Padding];
    kinds.get(usize::from(kind)).copied().ok_or_else(|| argument(format!("`kind` must be from 0 to 3, not {kind}")))
}

pub(crate) fn ecn(ecn: u8) -> Result<Option<Ecn>, Failure> {
    match ecn {
        0..=3 => Ok(Some(Ecn::from_bits(ecn))),
        PACELINE_ECN_UNKNOWN => Ok(None),
        _ => Err(argument(format!("`ecn` must be from 0 to 3, or 255 if it is unknown, not {ecn}"))),
    }
}

pub(crate) fn bounds(min_bps: u64, max_bps: u64) -> Result<Bounds, Failure> {
    let (min, max) = (rate(min_bps, "min_bps")?, rate(max_bps, "max_bps")?);
    let valid = min <= max && !max.is_zero();
    valid
        .then_some(Bounds::new(min, max))
        .ok_or_else(|| argument(format!("need max_bps above 0 and min_bps <= max_bps, not {min_bps} and {max_bps}")))
}

pub(crate) fn setup(limits: &PacelineLimits) -> Result<Setup, Failure> {
    let (start, Bounds { min, max, .. }) =
        (rate(limits.start_bps, "start_bps")?, bounds(limits.min_bps, limits.max_bps)?);
    if start.is_zero() || min > start {
        return Err(argument("need start_bps above 0 and min_bps <= start_bps"));
    }
    let setup = Setup::new(start, min, max);
    let packet_size = match limits.packet_size_bytes {
        0 => Setup::PACKET_SIZE,
        bytes => packet_size(bytes)?,
    };
    Ok(setup.with_packet_size(packet_size))
}

fn unsigned(delta: TimeDelta) -> u64 {
    delta.as_nanos().max(0).unsigned_abs()
}

pub(crate) fn decision(decision: &Decision, timeout: Option<Time>) -> PacelineDecision {
    let (window, window_bytes) = match decision.window {
        None => (PACELINE_WINDOW_NONE, 0),
        Some(Window::Outstanding(size)) => (PACELINE_WINDOW_OUTSTANDING, size.as_bytes()),
        Some(Window::AfterHighest(size)) => (PACELINE_WINDOW_AFTER_HIGHEST, size.as_bytes()),
    };
    PacelineDecision {
        target_bps: decision.target.as_bps(),
        stable_target_bps: decision.stable_target.as_bps(),
        pacing_bps: decision.pacing.as_bps(),
        padding_bps: decision.padding.as_bps(),
        burst_ns: unsigned(decision.burst),
        tick_ns: unsigned(decision.tick),
        window_bytes,
        queue_max_ns: decision.queue_max.as_nanos(),
        timeout_ns: timeout.map_or(PACELINE_NEVER, Time::as_nanos),
        window,
        ecn: decision.ecn as u8,
        ..PacelineDecision::default()
    }
}
