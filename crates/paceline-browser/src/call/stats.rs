// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts Chromium's statistics (`getStats`), sampled once a second, to events. Targets, round-trip times and loss become
//! the events that every world emits. All other values become signals of the half that Chromium implements.

use paceline::SignalSpec;
use paceline_netsim::flow::IP_UDP_HEADERS;
use paceline_netsim::records::{EventRecord, HalfName};
use paceline_units::{FlowId, Rate, Time, TimeDelta};
use serde::Deserialize;
use serde_json::Value;

/// The values of `qualityLimitationReason` (W3C webrtc-stats).
const LIMITS: &[&str] = &["none", "cpu", "bandwidth", "other"];

/// A signal and the function that computes it from the current sample, the previous one, and the seconds between them
/// (`None` for the first sample).
struct Stat<T> {
    spec: SignalSpec,
    value: fn(now: &T, was: &T, seconds: Option<f64>) -> Option<f64>,
}

const fn series<T>(name: &'static str, unit: &'static str, value: fn(&T, &T, Option<f64>) -> Option<f64>) -> Stat<T> {
    Stat { spec: SignalSpec::series(name, unit), value }
}

/// The statistics of a Chromium sender. A new signal needs one entry here.
const SENDER_STATS: [Stat<SenderSample>; 9] = [
    series("available outgoing bitrate", "bit/s", |now, _, _| now.pair.available_outgoing_bitrate),
    series("encoder target", "bit/s", |now, _, _| now.outbound.target_bitrate),
    series("frames sent", "1/s", |now, was, s| Some((now.outbound.frames_sent - was.outbound.frames_sent) / s?)),
    series("encode time", "ms", |now, was, _| {
        let frames = now.outbound.frames_encoded - was.outbound.frames_encoded;
        mean(1e3 * (now.outbound.total_encode_time - was.outbound.total_encode_time), frames)
    }),
    series("pacer delay", "ms", |now, was, _| {
        let packets = now.outbound.packets_sent - was.outbound.packets_sent;
        mean(1e3 * (now.outbound.total_packet_send_delay - was.outbound.total_packet_send_delay), packets)
    }),
    series("quantizer", "", |now, was, _| {
        mean(now.outbound.qp_sum - was.outbound.qp_sum, now.outbound.frames_encoded - was.outbound.frames_encoded)
    }),
    series("frame height", "px", |now, _, _| now.outbound.frame_height),
    Stat {
        spec: SignalSpec::state("quality limited by", LIMITS),
        value: |now, _, _| {
            let reason = now.outbound.quality_limitation_reason.as_deref()?;
            LIMITS.iter().position(|known| *known == reason).map(|index| index as f64)
        },
    },
    series("rtt of checks", "ms", |now, _, _| now.pair.current_round_trip_time.map(|seconds| 1e3 * seconds)),
];

/// The statistics of a Chromium receiver. A new signal needs one entry here.
const RECEIVER_STATS: [Stat<Inbound>; 11] = [
    series("frames decoded", "1/s", |now, was, s| Some((now.frames_decoded - was.frames_decoded) / s?)),
    series("frames dropped", "1/s", |now, was, s| Some((now.frames_dropped - was.frames_dropped) / s?)),
    series("freezes", "", |now, _, _| Some(now.freeze_count)),
    series("freeze time", "s", |now, _, _| Some(now.total_freezes_duration)),
    series("jitter buffer delay", "ms", |now, was, _| {
        let emitted = now.jitter_buffer_emitted_count - was.jitter_buffer_emitted_count;
        mean(1e3 * (now.jitter_buffer_delay - was.jitter_buffer_delay), emitted)
    }),
    series("jitter buffer target", "ms", |now, was, _| {
        let emitted = now.jitter_buffer_emitted_count - was.jitter_buffer_emitted_count;
        mean(1e3 * (now.jitter_buffer_target_delay - was.jitter_buffer_target_delay), emitted)
    }),
    series("processing delay", "ms", |now, was, _| {
        mean(1e3 * (now.total_processing_delay - was.total_processing_delay), now.frames_decoded - was.frames_decoded)
    }),
    series("decode time", "ms", |now, was, _| {
        mean(1e3 * (now.total_decode_time - was.total_decode_time), now.frames_decoded - was.frames_decoded)
    }),
    series("frame height", "px", |now, _, _| now.frame_height),
    series("NACKs", "1/s", |now, was, s| Some((now.nack_count - was.nack_count) / s?)),
    series("PLIs", "1/s", |now, was, s| Some((now.pli_count - was.pli_count) / s?)),
];

/// The signals of a Chromium sender.
pub const SENDER_SIGNALS: &[SignalSpec] = &specs(&SENDER_STATS);

/// The signals of a Chromium receiver.
pub const RECEIVER_SIGNALS: &[SignalSpec] = &specs(&RECEIVER_STATS);

const fn specs<T, const N: usize>(shown: &[Stat<T>; N]) -> [SignalSpec; N] {
    let mut specs = [SignalSpec::series("", ""); N];
    let mut index = 0;
    while index < N {
        specs[index] = shown[index].spec;
        index += 1;
    }
    specs
}

fn mean(sum: f64, n: f64) -> Option<f64> {
    (n > 0.0).then_some(sum / n)
}

/// Bytes of a packet that Chromium counts neither as payload nor as header: IP, UDP, and the SRTP tag.
const UNCOUNTED: u64 = IP_UDP_HEADERS.as_bytes() + SRTP_TAG as u64;

/// Bytes that SRTP adds to each packet (AES-CM with HMAC-SHA1-80).
pub const SRTP_TAG: usize = 10;

/// Largest age of an event when it is emitted. The testbed sorts the events of all threads within one second.
pub const MAX_EVENT_AGE: TimeDelta = TimeDelta::from_millis(700);

/// The state of a connection, reduced from the W3C's `RTCPeerConnectionState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConnectionState {
    /// Media can be sent.
    #[serde(rename = "connected")]
    Connected,
    /// The other endpoint cannot be reached.
    #[serde(rename = "failed")]
    Failed,
    /// Not connected yet, or temporarily disconnected.
    #[default]
    #[serde(other)]
    Waiting,
}

/// One sample of an endpoint's statistics, as the page returns it. Field names follow the W3C's webrtc-stats identifiers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatsSample {
    /// Sample time, ms since 1970.
    now: f64,
    /// State of the connection.
    pub state: ConnectionState,
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

/// The sender's part of a sample.
#[derive(Clone, Debug, Default)]
struct SenderSample {
    pair: Pair,
    outbound: Outbound,
}

impl StatsSample {
    /// Reads the page's result. A value of another form gives an empty sample.
    pub fn read(value: Value) -> Self {
        serde_json::from_value(value).unwrap_or_default()
    }
}

/// Converts the successive samples of one endpoint.
#[derive(Clone, Debug)]
pub struct StatsTracker {
    flow: FlowId,
    /// Time of the previous sample, ms since 1970.
    last_sample: Option<f64>,
    sender: SenderSample,
    remote: Remote,
    inbound: Inbound,
}

impl StatsTracker {
    /// Creates a tracker for an endpoint of this flow.
    pub fn new(flow: FlowId) -> Self {
        let (sender, remote, inbound) = Default::default();
        Self { flow, last_sample: None, sender, remote, inbound }
    }

    /// Emits the events of a sample taken at `at`. `time_of` converts a time of the page, ms since 1970, to run time.
    pub fn update(
        &mut self,
        at: Time,
        sample: StatsSample,
        time_of: impl Fn(f64) -> Time,
        emit: &mut dyn FnMut(EventRecord),
    ) {
        let seconds = self.last_sample.map(|before| (sample.now - before) / 1e3).filter(|seconds| *seconds > 0.0);
        self.last_sample = Some(sample.now);
        if let Some(outbound) = sample.outbound {
            let now = SenderSample { pair: sample.pair.unwrap_or_default(), outbound };
            let was = std::mem::replace(&mut self.sender, now);
            self.decision(at, &was.outbound, seconds, emit);
            self.signals(at, HalfName::Send, &SENDER_STATS, (&self.sender, &was), seconds, emit);
        }
        if let Some(now) = sample.remote.filter(|now| now.timestamp > self.remote.timestamp) {
            let was = std::mem::replace(&mut self.remote, now);
            self.report(time_of(now.timestamp).clamp(at - MAX_EVENT_AGE, at), &was, emit);
        }
        if let Some(now) = sample.inbound {
            let was = std::mem::replace(&mut self.inbound, now);
            self.signals(at, HalfName::Receive, &RECEIVER_STATS, (&self.inbound, &was), seconds, emit);
        }
    }

    /// Returns whether the CPU limited the encoder in the last sample.
    pub fn is_limited_by_cpu(&self) -> bool {
        self.sender.outbound.quality_limitation_reason.as_deref() == Some("cpu")
    }

    /// Emits the encoder's target plus the headers sent since the previous sample. Chromium does not report the pacing rate.
    fn decision(&self, at: Time, was: &Outbound, seconds: Option<f64>, emit: &mut dyn FnMut(EventRecord)) {
        let now = &self.sender.outbound;
        let (Some(target), Some(seconds)) = (now.target_bitrate, seconds) else { return };
        let packets = now.packets_sent - was.packets_sent;
        let headers = now.header_bytes_sent - was.header_bytes_sent + packets * UNCOUNTED as f64;
        let target = Rate::from_bps_f64(target + headers.max(0.0) * 8.0 / seconds);
        emit(EventRecord::Decision { at, flow: self.flow, target, pacing: target });
    }

    /// Emits the receiver reports since the previous sample; several round-trip times are averaged.
    fn report(&self, at: Time, was: &Remote, emit: &mut dyn FnMut(EventRecord)) {
        let (now, flow) = (&self.remote, self.flow);
        let n = now.round_trip_time_measurements - was.round_trip_time_measurements;
        if let Some(rtt) = mean(now.total_round_trip_time - was.total_round_trip_time, n) {
            emit(EventRecord::RoundTrip { at, flow, rtt: TimeDelta::from_secs_f64(rtt) });
        }
        if let Some(fraction) = now.fraction_lost {
            emit(EventRecord::FractionLost { at, flow, fraction });
        }
    }

    fn signals<T>(
        &self,
        at: Time,
        half: HalfName,
        shown: &[Stat<T>],
        (now, was): (&T, &T),
        seconds: Option<f64>,
        emit: &mut dyn FnMut(EventRecord),
    ) {
        for (index, Stat { value, .. }) in shown.iter().enumerate() {
            if let Some(value) = value(now, was, seconds).filter(|value| value.is_finite()) {
                emit(EventRecord::Signal { at, flow: self.flow, half, signal: index as u8, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn events(samples: &[(i64, Value)]) -> Vec<EventRecord> {
        let (mut tracker, mut events) = (StatsTracker::new(FlowId(2)), Vec::new());
        for (second, sample) in samples {
            let time_of = |ms: f64| Time::from_millis(ms as i64 - 5_000);
            let (at, sample) = (Time::from_secs(*second), StatsSample::read(sample.clone()));
            tracker.update(at, sample, time_of, &mut |event| events.push(event));
        }
        events
    }

    fn signal(rows: &[EventRecord], half: HalfName, name: &str) -> Vec<f64> {
        let table = if half == HalfName::Send { SENDER_SIGNALS } else { RECEIVER_SIGNALS };
        let index = table.iter().position(|spec| spec.name == name).unwrap() as u8;
        let value = |row: &EventRecord| match *row {
            EventRecord::Signal { half: of, signal, value, .. } if (of, signal) == (half, index) => Some(value),
            _ => None,
        };
        rows.iter().filter_map(value).collect()
    }

    /// 100 packets per second with 1600 bytes of RTP headers: 300 kbit/s and (1600 + 100 x 38) x 8 bit/s.
    #[test]
    fn converts_sender_statistics() {
        let look = |now: u32, packets: u32, reports: u32, reported: u32| {
            json!({
                "now": now,
                "pair": {"availableOutgoingBitrate": 450_000, "currentRoundTripTime": 0.05, "nominated": true},
                "outbound": {
                    "targetBitrate": 300_000, "packetsSent": packets, "headerBytesSent": 16 * packets,
                    "totalPacketSendDelay": 0.002 * packets as f64, "framesSent": packets / 4,
                    "framesEncoded": packets / 4, "qpSum": 10 * packets, "qualityLimitationReason": "bandwidth",
                },
                "remote": {
                    "timestamp": reported, "fractionLost": 0.25, "roundTripTimeMeasurements": reports,
                    "totalRoundTripTime": 0.06 * reports as f64,
                },
                "inbound": null,
            })
        };
        let rows =
            events(&[(1, look(6000, 10, 1, 5900)), (2, look(7000, 110, 3, 6200)), (3, look(8000, 110, 3, 6200))]);
        let (at, flow, target) = (Time::from_secs(2), FlowId(2), Rate::from_bps(300_000 + (1600 + 3800) * 8));
        assert!(rows.contains(&EventRecord::Decision { at, flow, target, pacing: target }), "{rows:?}");
        let (at, target) = (Time::from_secs(3), Rate::from_kbps(300));
        assert!(
            rows.contains(&EventRecord::Decision { at, flow, target, pacing: target }),
            "no packets, no headers: {rows:?}"
        );
        assert_eq!(
            rows.iter().filter(|row| matches!(row, EventRecord::Decision { .. })).count(),
            2,
            "the first sample has no interval"
        );

        let rtt = TimeDelta::from_millis(60);
        // The second report has the time 1.2 s. It is 0.8 s old, so its event gets the largest age, 0.7 s.
        let reported = [900, 1300].map(|ms| EventRecord::RoundTrip { at: Time::from_millis(ms), flow, rtt });
        let trips: Vec<EventRecord> =
            rows.iter().filter(|row| matches!(row, EventRecord::RoundTrip { .. })).copied().collect();
        assert_eq!(trips, reported);
        assert_eq!(
            rows.iter().filter(|row| matches!(row, EventRecord::FractionLost { fraction: 0.25, .. })).count(),
            2
        );

        let of = |name| signal(&rows, HalfName::Send, name);
        assert_eq!(of("available outgoing bitrate"), [450e3; 3]);
        assert_eq!((of("frames sent"), of("quality limited by")), (vec![25.0, 0.0], vec![2.0; 3]));
        assert!(of("pacer delay").iter().all(|ms| (1.99..2.01).contains(ms)) && of("pacer delay").len() == 2);
        assert_eq!(of("rtt of checks"), [50.0; 3]);
        assert!(signal(&rows, HalfName::Receive, "freezes").is_empty());
    }

    #[test]
    fn reads_connection_state_and_cpu_limit() {
        let state = |look: Value| StatsSample::read(look).state;
        assert_eq!(state(json!({"state": "connected"})), ConnectionState::Connected);
        assert_eq!(state(json!({"state": "failed"})), ConnectionState::Failed);
        assert_eq!(
            ["new", "connecting", "disconnected"].map(|s| state(json!({"state": s}))),
            [ConnectionState::Waiting; 3]
        );
        assert_eq!(state(json!({})), ConnectionState::Waiting);
        let by = |reason: &str| {
            let mut tracker = StatsTracker::new(FlowId(0));
            let sample = StatsSample::read(json!({"now": 1, "outbound": {"qualityLimitationReason": reason}}));
            tracker.update(Time::ZERO, sample, |_| Time::ZERO, &mut |_| {});
            tracker.is_limited_by_cpu()
        };
        assert_eq!(["cpu", "bandwidth", "none"].map(by), [true, false, false]);
    }

    #[test]
    fn converts_receiver_statistics() {
        let look = |now: u32, frames: u32, freezes: u32| {
            json!({"now": now, "pair": {}, "inbound": {
                "framesDecoded": frames, "freezeCount": freezes, "totalFreezesDuration": 0.5 * freezes as f64,
                "jitterBufferDelay": 0.04 * frames as f64, "jitterBufferEmittedCount": frames, "frameHeight": 360,
            }})
        };
        let rows = events(&[(1, look(6000, 30, 0)), (2, look(8000, 80, 2))]);
        let of = |name| signal(&rows, HalfName::Receive, name);
        assert_eq!(
            (of("frames decoded"), of("freezes"), of("freeze time")),
            (vec![25.0], vec![0.0, 2.0], vec![0.0, 1.0])
        );
        assert!(
            of("jitter buffer delay").iter().all(|ms| (39.9..40.1).contains(ms)) && of("frame height") == [360.0; 2]
        );
        assert!(rows.iter().all(|row| matches!(row, EventRecord::Signal { half: HalfName::Receive, .. })), "{rows:?}");
        assert!(events(&[(1, json!(null)), (2, json!({"now": "never"}))]).is_empty(), "ignores malformed samples");
    }
}
