// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use serde_json::json;

fn add(statistics: &mut Statistics, id: &str, kind: &str, second: f64, values: &Value) {
    let values = values.as_object().cloned().unwrap_or_default();
    statistics.add(&Sample::Object { id, kind, at_ms: 1.7e12 + 1e3 * second, values: &values });
}

fn flow(statistics: Statistics) -> Flow {
    let mut call = statistics.finish("test", "");
    assert_eq!(call.flows.len(), 1, "{call:?}");
    call.flows.remove(0)
}

fn points(flow: &Flow, quantity: Quantity) -> Vec<(Time, f64)> {
    flow.get(quantity).map(|series| series.points.clone()).unwrap_or_default()
}

#[test]
fn silence_before_the_first_value_is_none() {
    let mut statistics = Statistics::default();
    add(&mut statistics, "T", "transport", 0.0, &json!({}));
    for second in 3..20 {
        add(
            &mut statistics,
            "I",
            "inbound-rtp",
            f64::from(second),
            &json!({"bytesReceived": 1000 * second, "packetsReceived": second}),
        );
    }
    let flow = flow(statistics);
    for quantity in [Quantity::ReceivedRate, Quantity::PacketsSent] {
        let points = points(&flow, quantity);
        assert_eq!(points[0].0, Time::from_secs(3), "{points:?}");
        assert!(points.iter().all(|(_, value)| *value > 0.0), "{points:?}");
    }
}

#[test]
fn silence_after_the_first_value_shows() {
    let mut statistics = Statistics::default();
    for second in 0..20 {
        let sent = if second < 10 { second } else { second.max(15) };
        add(&mut statistics, "O", "outbound-rtp", f64::from(second), &json!({"bytesSent": 1000 * sent}));
    }
    let flow = flow(statistics);
    assert!(points(&flow, Quantity::SentRate).iter().any(|(_, value)| *value == 0.0));
}

/// Returns the target of streams, given as id, media source, bytes a second and target.
fn target(streams: &[(&str, &str, u64, Option<f64>)]) -> Vec<(Time, f64)> {
    let mut statistics = Statistics::default();
    for second in 0..20u32 {
        for (id, source, bytes, target) in streams {
            let mut values = json!({"bytesSent": bytes * u64::from(second), "mediaSourceId": source});
            if let Some(target) = target {
                values["targetBitrate"] = json!(target);
            }
            add(&mut statistics, id, "outbound-rtp", f64::from(second), &values);
        }
    }
    points(&flow(statistics), Quantity::Target)
}

#[test]
fn layers_with_the_target_of_all_count_once() {
    let all = |points: &[(Time, f64)], value: f64| points.len() > 15 && points.iter().all(|(_, v)| *v == value);
    let same = target(&[("L0", "V", 1000, Some(9e5)), ("L1", "V", 4000, Some(9e5)), ("A", "M", 4000, Some(32e3))]);
    assert!(all(&same, 932e3), "{same:?}");
    let different = target(&[("L0", "V", 1000, Some(2e5)), ("L1", "V", 4000, Some(7e5))]);
    assert!(all(&different, 9e5), "{different:?}");
    let sources = target(&[("O0", "V", 1000, Some(2e5)), ("O1", "W", 4000, Some(2e5))]);
    assert!(all(&sources, 4e5), "{sources:?}");
}

#[test]
fn targets_of_audio_alone_are_not_used() {
    assert_eq!(target(&[("A", "M", 4000, Some(32e3)), ("O", "V", 100_000, None)]), []);
    // A stream without bytes, and audio beside video, need none.
    assert!(!target(&[("O", "V", 100_000, Some(8e5)), ("P", "W", 0, None)]).is_empty());
    assert!(!target(&[("O", "V", 100_000, Some(8e5)), ("A", "M", 4000, None)]).is_empty());
}

/// Returns the number of reports in 20 s whose values depend on the second.
fn reports(values: &dyn Fn(u32) -> Value) -> f64 {
    let mut statistics = Statistics::default();
    for second in 0..21u32 {
        add(&mut statistics, "O", "outbound-rtp", f64::from(second), &json!({"bytesSent": 1000 * second}));
        add(&mut statistics, "R", "remote-inbound-rtp", f64::from(second), &values(second));
    }
    points(&flow(statistics), Quantity::Feedback).iter().map(|(_, value)| value).sum()
}

#[test]
fn reports_of_a_path_on_which_nothing_changes_count() {
    let same = json!({"roundTripTime": 0.025, "packetsLost": 0, "jitter": 0.001});
    let with = |name: &str, value: f64| {
        let mut values = same.clone();
        values[name] = json!(value);
        values
    };
    assert!(reports(&|_| same.clone()) <= 1.0);
    assert!(reports(&|second| with("timestamp", 1.7e12 + 1e3 * f64::from(second))) >= 19.0);
    assert!(reports(&|second| with("jitter", 0.001 + 1e-4 * f64::from(second % 3))) >= 19.0);
    assert!(reports(&|second| with("roundTripTimeMeasurements", f64::from(second))) >= 19.0);
}

#[test]
fn directions_without_bytes_are_left_out() {
    let mut statistics = Statistics::default();
    for second in 0..20u32 {
        add(&mut statistics, "O", "outbound-rtp", f64::from(second), &json!({"bytesSent": 1000 * second}));
        add(&mut statistics, "I", "inbound-rtp", f64::from(second), &json!({"bytesReceived": 0}));
    }
    let call = statistics.finish("test", "");
    assert_eq!(call.flows.iter().map(|flow| flow.is_sent).collect::<Vec<_>>(), [true]);
    assert!(call.notes.iter().any(|note| note.contains("left out")), "{:?}", call.notes);
}

/// A sender's statistics each `period`, s, for 60 s; a report for each sample with the jitter of this time, s.
fn sampled(period: u32, jitter: impl Fn(u32) -> f64) -> Flow {
    let mut statistics = Statistics::default();
    for second in (0..=60).step_by(period as usize) {
        let sent = json!({"bytesSent": 125_000 * second, "packetsSent": 100 * second});
        let report = json!({"roundTripTimeMeasurements": second, "packetsLost": 0, "jitter": jitter(second)});
        add(&mut statistics, "O", "outbound-rtp", f64::from(second), &sent);
        add(&mut statistics, "R", "remote-inbound-rtp", f64::from(second), &report);
    }
    flow(statistics)
}

#[test]
fn a_report_that_repeats_the_jitter_shows_that_nothing_arrived() {
    let reports =
        |flow: &Flow, from, to| flow.get(Quantity::Feedback).unwrap().sum(Time::from_secs(from), Time::from_secs(to));
    let stalls = sampled(1, |at| if (30..34).contains(&at) { 0.00512 } else { 0.00101 + 1e-5 * f64::from(at) });
    assert_eq!((reports(&stalls, 20, 30), reports(&stalls, 31, 34), reports(&stalls, 34, 44)), (10.0, 0.0, 10.0));
    // Whole milliseconds are rounded.
    assert_eq!(reports(&sampled(1, |_| 0.001), 20, 30), 10.0);
}

#[test]
fn the_interval_is_that_of_the_samples() {
    for period in [1, 10] {
        assert_eq!(sampled(period, |at| 1e-5 * f64::from(at)).interval, TimeDelta::from_secs(i64::from(period)));
    }
}

#[test]
fn a_report_has_one_round_trip_time_for_all_of_its_streams() {
    let mut statistics = Statistics::default();
    for second in 0..20 {
        let at = f64::from(second);
        add(&mut statistics, "O", "outbound-rtp", at, &json!({"bytesSent": 1000 * second}));
        for (id, rtt) in [("A", 0.05), ("V", 0.2), ("W", 0.1)] {
            add(&mut statistics, id, "remote-inbound-rtp", at, &json!({"roundTripTime": rtt, "jitter": 1e-3 * at}));
        }
    }
    let points = points(&flow(statistics), Quantity::RoundTrip);
    assert_eq!(points.len(), 20, "{points:?}");
    assert!(points.iter().all(|(_, rtt)| *rtt == 0.2), "{points:?}");
}
