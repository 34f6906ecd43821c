//! Chromium's statistics (getStats), once a second, as rows: what is a row in every world becomes that row, all else is a
//! signal of the half that Chromium plays.

use paceline::SignalSpec;
use paceline_flow::IP_UDP_HEADERS;
use paceline_lab::rows::{HalfName, Row};
use paceline_units::{FlowId, Rate, Time, TimeDelta};
use serde::Deserialize;
use serde_json::Value;

/// What quality may be limited by, as Chromium says it.
const LIMITS: &[&str] = &["none", "cpu", "bandwidth", "other"];

/// What a Chromium that sends shows. Those "in the second" are of what happened since the look before.
pub const SENDS: &[SignalSpec] = &[
    SignalSpec::series("available outgoing bitrate", "bit/s"),
    SignalSpec::series("encoder target", "bit/s"),
    SignalSpec::series("frames sent", "1/s"),
    SignalSpec::series("encode time", "ms"),
    SignalSpec::series("pacer delay", "ms"),
    SignalSpec::series("quantizer", ""),
    SignalSpec::series("frame height", "px"),
    SignalSpec::state("quality limited by", LIMITS),
    SignalSpec::series("rtt of checks", "ms"),
];

/// What a Chromium that receives shows.
pub const RECEIVES: &[SignalSpec] = &[
    SignalSpec::series("frames decoded", "1/s"),
    SignalSpec::series("frames dropped", "1/s"),
    SignalSpec::series("freezes", ""),
    SignalSpec::series("freeze time", "s"),
    SignalSpec::series("jitter buffer delay", "ms"),
    SignalSpec::series("jitter buffer target", "ms"),
    SignalSpec::series("processing delay", "ms"),
    SignalSpec::series("decode time", "ms"),
    SignalSpec::series("frame height", "px"),
    SignalSpec::series("NACKs", "1/s"),
    SignalSpec::series("PLIs", "1/s"),
];

/// Bytes of a packet that Chromium counts neither as payload nor as header: IP, UDP, and SRTP's tag.
const UNCOUNTED: u64 = IP_UDP_HEADERS.as_bytes() + SRTP_TAG;

/// What SRTP adds to each packet (AES-CM with HMAC-SHA1-80).
pub const SRTP_TAG: u64 = 10;

/// One look, as the page hands it over.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Look {
    /// When, ms since 1970.
    pub now: f64,
    pair: Option<Pair>,
    outbound: Option<Outbound>,
    remote: Option<Remote>,
    inbound: Option<Inbound>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pair {
    available_outgoing_bitrate: Option<f64>,
    current_round_trip_time: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Outbound {
    target_bitrate: Option<f64>,
    header_bytes_sent: f64,
    packets_sent: f64,
    frames_sent: f64,
    frames_encoded: f64,
    total_encode_time: f64,
    total_packet_send_delay: f64,
    qp_sum: f64,
    frame_height: Option<f64>,
    quality_limitation_reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Remote {
    timestamp: f64,
    fraction_lost: Option<f64>,
    total_round_trip_time: f64,
    round_trip_time_measurements: f64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Inbound {
    frames_decoded: f64,
    frames_dropped: f64,
    freeze_count: f64,
    total_freezes_duration: f64,
    jitter_buffer_delay: f64,
    jitter_buffer_target_delay: f64,
    jitter_buffer_emitted_count: f64,
    total_processing_delay: f64,
    total_decode_time: f64,
    frame_height: Option<f64>,
    nack_count: f64,
    pli_count: f64,
}

impl Look {
    /// Reads what the page says; nothing of it where it is no look.
    pub fn read(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_default()
    }
}

/// One end's statistics over time.
#[derive(Clone, Debug)]
pub struct Statistics {
    flow: FlowId,
    before: Look,
}

impl Statistics {
    /// Of an end of this flow.
    pub fn new(flow: FlowId) -> Self {
        Self { flow, before: Look::default() }
    }

    /// What a look at time `at` adds; `of_stamp` says which time a stamp of the page's clock is, in ms since 1970. Signals
    /// only if they are wanted.
    pub fn looked(
        &mut self,
        at: Time,
        look: Look,
        of_stamp: impl Fn(f64) -> Time,
        signals: bool,
        tell: &mut dyn FnMut(Row),
    ) {
        let before = std::mem::replace(&mut self.before, look);
        let (look, flow) = (&self.before, self.flow);
        let seconds = (look.now - before.now) / 1e3;
        // The first look is no interval.
        let passed = (before.now > 0.0 && seconds > 0.0).then_some(seconds);
        let mut shown: Vec<(HalfName, u8, Option<f64>)> = Vec::new();
        if let Some(pair) = look.pair.filter(|_| look.outbound.is_some()) {
            shown.push((HalfName::Send, 0, pair.available_outgoing_bitrate));
            shown.push((HalfName::Send, 8, pair.current_round_trip_time.map(|s| s * 1e3)));
        }
        if let Some(now) = &look.outbound {
            let was = before.outbound.clone().unwrap_or_default();
            let over = |sum: f64, n: f64| (n > 0.0).then_some(sum / n);
            if let (Some(target), Some(seconds)) = (now.target_bitrate, passed) {
                let packets = now.packets_sent - was.packets_sent;
                let headers = now.header_bytes_sent - was.header_bytes_sent + packets * UNCOUNTED as f64;
                let target = Rate::from_bps((target + headers.max(0.0) * 8.0 / seconds).max(0.0) as u64);
                tell(Row::Decision { at, flow, target, pacing: target });
            }
            let frames = now.frames_encoded - was.frames_encoded;
            let limit = now.quality_limitation_reason.as_deref();
            let limit = limit.and_then(|reason| LIMITS.iter().position(|known| *known == reason));
            shown.extend([
                (HalfName::Send, 1, now.target_bitrate),
                (HalfName::Send, 2, passed.map(|s| (now.frames_sent - was.frames_sent) / s)),
                (HalfName::Send, 3, over((now.total_encode_time - was.total_encode_time) * 1e3, frames)),
                (
                    HalfName::Send,
                    4,
                    over(
                        (now.total_packet_send_delay - was.total_packet_send_delay) * 1e3,
                        now.packets_sent - was.packets_sent,
                    ),
                ),
                (HalfName::Send, 5, over(now.qp_sum - was.qp_sum, frames)),
                (HalfName::Send, 6, now.frame_height),
                (HalfName::Send, 7, limit.map(|index| index as f64)),
            ]);
        }
        if let Some(now) = look.remote.filter(|now| now.timestamp > before.remote.unwrap_or_default().timestamp) {
            let was = before.remote.unwrap_or_default();
            // A stamp is of the report, which may be a second old; rows are told within a second of their time.
            let reported = of_stamp(now.timestamp).clamp(at - OLDEST, at);
            let n = now.round_trip_time_measurements - was.round_trip_time_measurements;
            if n > 0.0 {
                let mean = (now.total_round_trip_time - was.total_round_trip_time) / n;
                let rtt = TimeDelta::from_nanos((mean * 1e9) as i64);
                tell(Row::RoundTrip { at: reported, flow, rtt });
            }
            if let Some(fraction) = now.fraction_lost {
                tell(Row::FractionLost { at: reported, flow, fraction });
            }
        }
        if let Some(now) = &look.inbound {
            let was = before.inbound.unwrap_or_default();
            let over = |sum: f64, n: f64| (n > 0.0).then_some(sum * 1e3 / n);
            let rate = |now: f64, was: f64| passed.map(|seconds| (now - was) / seconds);
            let emitted = now.jitter_buffer_emitted_count - was.jitter_buffer_emitted_count;
            let decoded = now.frames_decoded - was.frames_decoded;
            shown.extend([
                (HalfName::Receive, 0, rate(now.frames_decoded, was.frames_decoded)),
                (HalfName::Receive, 1, rate(now.frames_dropped, was.frames_dropped)),
                (HalfName::Receive, 2, Some(now.freeze_count)),
                (HalfName::Receive, 3, Some(now.total_freezes_duration)),
                (HalfName::Receive, 4, over(now.jitter_buffer_delay - was.jitter_buffer_delay, emitted)),
                (HalfName::Receive, 5, over(now.jitter_buffer_target_delay - was.jitter_buffer_target_delay, emitted)),
                (HalfName::Receive, 6, over(now.total_processing_delay - was.total_processing_delay, decoded)),
                (HalfName::Receive, 7, over(now.total_decode_time - was.total_decode_time, decoded)),
                (HalfName::Receive, 8, now.frame_height),
                (HalfName::Receive, 9, rate(now.nack_count, was.nack_count)),
                (HalfName::Receive, 10, rate(now.pli_count, was.pli_count)),
            ]);
        }
        for (half, signal, value) in shown {
            if let Some(value) = value.filter(|value| signals && value.is_finite()) {
                tell(Row::Signal { at, flow, half, signal, value });
            }
        }
    }
}

/// No row is told later than this after its time.
pub const OLDEST: TimeDelta = TimeDelta::from_millis(700);
