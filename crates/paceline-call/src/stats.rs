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

/// A signal, and how two looks at an end give its value: this one, the one before, and the seconds between, if there was one.
struct Shown<T> {
    spec: SignalSpec,
    value: fn(now: &T, was: &T, seconds: Option<f64>) -> Option<f64>,
}

const fn series<T>(name: &'static str, unit: &'static str, value: fn(&T, &T, Option<f64>) -> Option<f64>) -> Shown<T> {
    Shown { spec: SignalSpec::series(name, unit), value }
}

/// What a Chromium that sends shows. To add one: a line here.
const OF_SENDER: [Shown<Sending>; 9] = [
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
    Shown {
        spec: SignalSpec::state("quality limited by", LIMITS),
        value: |now, _, _| {
            let reason = now.outbound.quality_limitation_reason.as_deref()?;
            LIMITS.iter().position(|known| *known == reason).map(|index| index as f64)
        },
    },
    series("rtt of checks", "ms", |now, _, _| now.pair.current_round_trip_time.map(|seconds| 1e3 * seconds)),
];

/// What a Chromium that receives shows. To add one: a line here.
const OF_RECEIVER: [Shown<Inbound>; 11] = [
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

/// The signals of a Chromium that sends.
pub const SENDS: &[SignalSpec] = &specs(&OF_SENDER);

/// The signals of a Chromium that receives.
pub const RECEIVES: &[SignalSpec] = &specs(&OF_RECEIVER);

const fn specs<T, const N: usize>(shown: &[Shown<T>; N]) -> [SignalSpec; N] {
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

/// Bytes of a packet that Chromium counts neither as payload nor as header: IP, UDP, and SRTP's tag.
const UNCOUNTED: u64 = IP_UDP_HEADERS.as_bytes() + SRTP_TAG as u64;

/// What SRTP adds to each packet (AES-CM with HMAC-SHA1-80).
pub const SRTP_TAG: usize = 10;

/// No row is told later than this after its time: the track puts rows of many threads in order within a second.
pub const OLDEST: TimeDelta = TimeDelta::from_millis(700);

/// How far the connection of an end is, of the W3C's `RTCPeerConnectionState` what matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum State {
    /// Media can go.
    #[serde(rename = "connected")]
    Up,
    /// The other end could not be reached, or no longer.
    #[serde(rename = "failed")]
    Failed,
    /// Not yet, or not at the moment.
    #[default]
    #[serde(other)]
    Waiting,
}

/// One look at an end, as the page hands it over. Names are those of the W3C's identifiers for statistics.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Look {
    /// When, ms since 1970.
    now: f64,
    /// How far the connection is.
    pub state: State,
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

/// What a sender says of itself.
#[derive(Clone, Debug, Default)]
struct Sending {
    pair: Pair,
    outbound: Outbound,
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
    /// When the last look was, ms since 1970; none: there was none.
    looked: Option<f64>,
    sending: Sending,
    remote: Remote,
    inbound: Inbound,
}

impl Statistics {
    /// Of an end of this flow.
    pub fn new(flow: FlowId) -> Self {
        let (sending, remote, inbound) = Default::default();
        Self { flow, looked: None, sending, remote, inbound }
    }

    /// What a look at time `at` adds; `of_stamp` says which time a stamp of the page's clock is, in ms since 1970.
    pub fn looked(&mut self, at: Time, look: Look, of_stamp: impl Fn(f64) -> Time, tell: &mut dyn FnMut(Row)) {
        let seconds = self.looked.map(|before| (look.now - before) / 1e3).filter(|seconds| *seconds > 0.0);
        self.looked = Some(look.now);
        if let Some(outbound) = look.outbound {
            let now = Sending { pair: look.pair.unwrap_or_default(), outbound };
            let was = std::mem::replace(&mut self.sending, now);
            self.decision(at, &was.outbound, seconds, tell);
            self.signals(at, HalfName::Send, &OF_SENDER, (&self.sending, &was), seconds, tell);
        }
        if let Some(now) = look.remote.filter(|now| now.timestamp > self.remote.timestamp) {
            let was = std::mem::replace(&mut self.remote, now);
            // The stamp is that of the report.
            self.report(of_stamp(now.timestamp).clamp(at - OLDEST, at), &was, tell);
        }
        if let Some(now) = look.inbound {
            let was = std::mem::replace(&mut self.inbound, now);
            self.signals(at, HalfName::Receive, &OF_RECEIVER, (&self.inbound, &was), seconds, tell);
        }
    }

    /// Whether the processor limited what a sender sent, at the last look.
    pub fn is_limited_by_cpu(&self) -> bool {
        self.sending.outbound.quality_limitation_reason.as_deref() == Some("cpu")
    }

    /// The target is the encoder's, with the headers that the packets of the last second had. The pacer's rate is not told.
    fn decision(&self, at: Time, was: &Outbound, seconds: Option<f64>, tell: &mut dyn FnMut(Row)) {
        let now = &self.sending.outbound;
        let (Some(target), Some(seconds)) = (now.target_bitrate, seconds) else { return };
        let packets = now.packets_sent - was.packets_sent;
        let headers = now.header_bytes_sent - was.header_bytes_sent + packets * UNCOUNTED as f64;
        let target = Rate::from_bps_f64(target + headers.max(0.0) * 8.0 / seconds);
        tell(Row::Decision { at, flow: self.flow, target, pacing: target });
    }

    /// What the receiver reported since: of several reports the mean round trip.
    fn report(&self, at: Time, was: &Remote, tell: &mut dyn FnMut(Row)) {
        let (now, flow) = (&self.remote, self.flow);
        let n = now.round_trip_time_measurements - was.round_trip_time_measurements;
        if let Some(rtt) = mean(now.total_round_trip_time - was.total_round_trip_time, n) {
            tell(Row::RoundTrip { at, flow, rtt: TimeDelta::from_secs_f64(rtt) });
        }
        if let Some(fraction) = now.fraction_lost {
            tell(Row::FractionLost { at, flow, fraction });
        }
    }

    fn signals<T>(
        &self,
        at: Time,
        half: HalfName,
        shown: &[Shown<T>],
        (now, was): (&T, &T),
        seconds: Option<f64>,
        tell: &mut dyn FnMut(Row),
    ) {
        for (index, Shown { value, .. }) in shown.iter().enumerate() {
            if let Some(value) = value(now, was, seconds).filter(|value| value.is_finite()) {
                tell(Row::Signal { at, flow: self.flow, half, signal: index as u8, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(looks: &[(i64, Value)]) -> Vec<Row> {
        let (mut statistics, mut rows) = (Statistics::new(FlowId(2)), Vec::new());
        for (second, look) in looks {
            let of_stamp = |ms: f64| Time::from_millis(ms as i64 - 5_000);
            statistics.looked(Time::from_secs(*second), Look::read(look.clone()), of_stamp, &mut |row| rows.push(row));
        }
        rows
    }

    fn signal(rows: &[Row], half: HalfName, name: &str) -> Vec<f64> {
        let table = if half == HalfName::Send { SENDS } else { RECEIVES };
        let index = table.iter().position(|spec| spec.name == name).unwrap() as u8;
        let value = |row: &Row| match *row {
            Row::Signal { half: of, signal, value, .. } if (of, signal) == (half, index) => Some(value),
            _ => None,
        };
        rows.iter().filter_map(value).collect()
    }

    /// In a second 100 packets left with 1600 bytes of RTP headers: 300 kbit/s and (1600 + 100 x 38) x 8 bit/s.
    #[test]
    fn a_sender_becomes_decisions_reports_and_signals() {
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
        let rows = told(&[(1, look(6000, 10, 1, 5900)), (2, look(7000, 110, 3, 6200)), (3, look(8000, 110, 3, 6200))]);
        let (at, flow, target) = (Time::from_secs(2), FlowId(2), Rate::from_bps(300_000 + (1600 + 3800) * 8));
        assert!(rows.contains(&Row::Decision { at, flow, target, pacing: target }), "{rows:?}");
        let (at, target) = (Time::from_secs(3), Rate::from_kbps(300));
        assert!(rows.contains(&Row::Decision { at, flow, target, pacing: target }), "nothing was sent: {rows:?}");
        assert_eq!(rows.iter().filter(|row| matches!(row, Row::Decision { .. })).count(), 2, "one look is no interval");

        let rtt = TimeDelta::from_millis(60);
        // The second report was stamped 1.2 s, and 0.8 s old it is told as 0.7 s old.
        let reported = [900, 1300].map(|ms| Row::RoundTrip { at: Time::from_millis(ms), flow, rtt });
        let trips: Vec<Row> = rows.iter().filter(|row| matches!(row, Row::RoundTrip { .. })).copied().collect();
        assert_eq!(trips, reported);
        assert_eq!(rows.iter().filter(|row| matches!(row, Row::FractionLost { fraction: 0.25, .. })).count(), 2);

        let of = |name| signal(&rows, HalfName::Send, name);
        assert_eq!(of("available outgoing bitrate"), [450e3; 3]);
        assert_eq!((of("frames sent"), of("quality limited by")), (vec![25.0, 0.0], vec![2.0; 3]));
        assert!(of("pacer delay").iter().all(|ms| (1.99..2.01).contains(ms)) && of("pacer delay").len() == 2);
        assert_eq!(of("rtt of checks"), [50.0; 3]);
        assert!(signal(&rows, HalfName::Receive, "freezes").is_empty());
    }

    #[test]
    fn a_look_says_how_far_the_connection_is_and_what_limits_a_sender() {
        let state = |look: Value| Look::read(look).state;
        assert_eq!(state(json!({"state": "connected"})), State::Up);
        assert_eq!(state(json!({"state": "failed"})), State::Failed);
        assert_eq!(["new", "connecting", "disconnected"].map(|s| state(json!({"state": s}))), [State::Waiting; 3]);
        assert_eq!(state(json!({})), State::Waiting);
        let by = |reason: &str| {
            let mut statistics = Statistics::new(FlowId(0));
            let look = Look::read(json!({"now": 1, "outbound": {"qualityLimitationReason": reason}}));
            statistics.looked(Time::ZERO, look, |_| Time::ZERO, &mut |_| {});
            statistics.is_limited_by_cpu()
        };
        assert_eq!(["cpu", "bandwidth", "none"].map(by), [true, false, false]);
    }

    #[test]
    fn a_receiver_becomes_signals() {
        let look = |now: u32, frames: u32, freezes: u32| {
            json!({"now": now, "pair": {}, "inbound": {
                "framesDecoded": frames, "freezeCount": freezes, "totalFreezesDuration": 0.5 * freezes as f64,
                "jitterBufferDelay": 0.04 * frames as f64, "jitterBufferEmittedCount": frames, "frameHeight": 360,
            }})
        };
        let rows = told(&[(1, look(6000, 30, 0)), (2, look(8000, 80, 2))]);
        let of = |name| signal(&rows, HalfName::Receive, name);
        assert_eq!(
            (of("frames decoded"), of("freezes"), of("freeze time")),
            (vec![25.0], vec![0.0, 2.0], vec![0.0, 1.0])
        );
        assert!(
            of("jitter buffer delay").iter().all(|ms| (39.9..40.1).contains(ms)) && of("frame height") == [360.0; 2]
        );
        assert!(rows.iter().all(|row| matches!(row, Row::Signal { half: HalfName::Receive, .. })), "{rows:?}");
        assert!(told(&[(1, json!(null)), (2, json!({"now": "never"}))]).is_empty(), "what is no look is nothing");
    }
}
