// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the types of the library of controllers to those of C.

use paceline::{
    Decision, Message, NadaMode, PacketKind, PacketReport, QueuedFrame, SentPacket, Setup, StreamState, Window,
};
use paceline_abi::*;
use paceline_units::{DataSize, Ecn, Rate, TimeDelta};

pub(super) fn limits(setup: &Setup) -> PacelineLimits {
    PacelineLimits {
        start_bps: setup.start.as_bps(),
        min_bps: setup.min.as_bps(),
        max_bps: setup.max.as_bps(),
        packet_size_bytes: setup.packet_size.as_bytes(),
        ..PacelineLimits::default()
    }
}

fn kind(kind: PacketKind) -> u8 {
    match kind {
        PacketKind::Media => PACELINE_KIND_MEDIA,
        PacketKind::Retransmission => PACELINE_KIND_RETRANSMISSION,
        PacketKind::Fec => PACELINE_KIND_FEC,
        PacketKind::Padding => PACELINE_KIND_PADDING,
    }
}

fn probe(probe: Option<u16>) -> i32 {
    probe.map_or(PACELINE_NO_PROBE, i32::from)
}

pub(super) fn sent(p: &SentPacket) -> PacelineSentPacket {
    PacelineSentPacket {
        sequence: p.sequence,
        size_bytes: p.size.as_bytes(),
        in_flight_bytes: p.in_flight.map_or(-1, |size| i64::try_from(size.as_bytes()).unwrap_or(i64::MAX)),
        probe: probe(p.probe),
        stream: p.stream.0,
        kind: kind(p.kind),
    }
}

pub(super) fn report(p: &PacketReport) -> PacelinePacketReport {
    PacelinePacketReport {
        sequence: p.sequence,
        sent_ns: p.sent.as_nanos(),
        arrival_ns: p.arrival.map_or(0, |at| at.as_nanos()),
        size_bytes: p.size.as_bytes(),
        in_flight_bytes: p.in_flight.as_bytes(),
        probe: probe(p.probe),
        stream: p.stream.0,
        kind: kind(p.kind),
        arrived: p.arrival.is_some().into(),
        ecn: p.ecn.map_or(PACELINE_ECN_UNKNOWN, |ecn| ecn as u8),
    }
}

pub(super) fn round_trip(rtt: &paceline::RoundTrip) -> PacelineRoundTrip {
    PacelineRoundTrip { last_ns: rtt.last.as_nanos(), smoothed_ns: rtt.smoothed.as_nanos() }
}

/// Returns the message; `None` for one that this version does not have.
pub(super) fn message(message: &Message) -> Option<PacelineMessage> {
    let empty = PacelineMessage::default();
    Some(match message {
        Message::Remb(rate) => PacelineMessage { kind: PACELINE_MESSAGE_REMB, rate_bps: rate.as_bps(), ..empty },
        Message::Nada(report) => PacelineMessage {
            kind: PACELINE_MESSAGE_NADA,
            ramp_up: (report.mode == NadaMode::RampUp).into(),
            signal_ns: report.signal.as_nanos(),
            rate_bps: report.incoming.as_bps(),
            ..empty
        },
        Message::App(app) => {
            let mut words = [0; 16];
            words[..app.data().len()].copy_from_slice(app.data());
            let (name, subtype, word_count) = (app.name(), app.subtype(), app.data().len() as u32);
            PacelineMessage { kind: PACELINE_MESSAGE_APP, name, subtype, word_count, words, ..empty }
        }
        _ => return None,
    })
}

pub(super) fn stream(s: &StreamState) -> PacelineStream {
    PacelineStream {
        queued_bytes: s.queued.as_bytes(),
        unused_bps: s.unused.as_bps(),
        priority: s.priority,
        min_bps: s.min.as_bps(),
        max_bps: s.max.as_bps(),
        stream: s.stream.0,
    }
}

pub(super) fn frame(f: &QueuedFrame) -> PacelineFrame {
    PacelineFrame { size_bytes: f.size.as_bytes(), packets: f.packets, stream: f.stream.0, key: f.key.into() }
}

/// Returns what `decide` overwrites.
pub(super) fn blank_decision(setup: &Setup) -> PacelineDecision {
    PacelineDecision {
        target_bps: setup.start.as_bps(),
        queue_max_ns: PACELINE_NEVER,
        timeout_ns: PACELINE_NEVER,
        ..PacelineDecision::default()
    }
}

pub(super) fn span(ns: u64) -> TimeDelta {
    TimeDelta::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Checks and converts a decision. The error states what is wrong with it.
pub(super) fn decision(d: &PacelineDecision) -> Result<Decision, String> {
    let or_target = |bps| Rate::from_bps(if bps == 0 { d.target_bps } else { bps });
    if d.queue_max_ns < 0 {
        return Err(format!("queue_max_ns must be at least 0, not {}", d.queue_max_ns));
    }
    Ok(Decision::new(Rate::from_bps(d.target_bps))
        .with_stable_target(or_target(d.stable_target_bps))
        .with_pacing(or_target(d.pacing_bps))
        .with_burst(span(d.burst_ns))
        .with_tick(span(d.tick_ns))
        .with_window(match d.window {
            PACELINE_WINDOW_NONE => None,
            PACELINE_WINDOW_OUTSTANDING => Some(Window::Outstanding(DataSize::from_bytes(d.window_bytes))),
            PACELINE_WINDOW_AFTER_HIGHEST => Some(Window::AfterHighest(DataSize::from_bytes(d.window_bytes))),
            other => return Err(format!("window must be 0, 1 or 2, not {other}")),
        })
        .with_padding(Rate::from_bps(d.padding_bps))
        .with_ecn(match d.ecn {
            PACELINE_ECN_NOT_ECT | PACELINE_ECN_ECT1 | PACELINE_ECN_ECT0 => Ecn::from_bits(d.ecn),
            other => return Err(format!("ecn must be 0, 1 or 2, not {other}: only routers send CE")),
        })
        .with_queue_max(TimeDelta::from_nanos(d.queue_max_ns)))
}
