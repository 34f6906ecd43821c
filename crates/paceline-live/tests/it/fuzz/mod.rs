// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fuzz targets of this crate (`fuzz/` at the root of the repository), for a short time and on stable Rust.

#[cfg(unix)]
mod exec;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod hosts_samples;
#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
#[cfg(target_os = "linux")]
mod terms;
mod watch;

use paceline_live::watch::{AccessControl, parse_command};

#[test]
fn requests_and_commands_survive_changes() {
    let page = format!("GET /{}/ HTTP/1.1\r\nHost: 127.0.0.1:8411\r\nAccept: */*\r\n\r\n", watch::TOKEN);
    let socket = format!(
        "GET /{}/socket HTTP/1.1\r\nHost: localhost:8411\r\nOrigin: http://localhost:8411\r\nUpgrade: websocket\r\nConnection: \
         Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        watch::TOKEN
    );
    let access = AccessControl { port: 8411, token: watch::TOKEN.to_owned() };
    for request in [&page, &socket] {
        assert!(access.authorize(request.as_bytes()).is_ok(), "{request}");
    }
    let command = "{\"capacity_bps\": 1e6}";
    assert!(parse_command(command).is_ok());
    let samples = [page, socket, command.to_owned(), "\"scenario\"".to_owned(), "{\"loss\": 0.1}".to_owned()];
    mutations::check_mutations("watch", &samples.map(String::into_bytes), 50_000, watch::check);
}

#[test]
#[cfg(unix)]
fn lines_of_programs_survive_changes() {
    let answers = [
        r#"{"target_bps":300000}"#,
        r#"{"target_bps":400000,"stable_target_bps":350000,"pacing_bps":1000000,"burst_ns":40000000,"tick_ns":5000000}"#,
        r#"{"target_bps":500000,"window":{"outstanding_bytes":20000},"padding_bps":100000,"ecn":"ect1","signals":{"queue":1.5}}"#,
        r#"{"target_bps":600000,"window":{"after_highest_bytes":90000},"queue_max_ns":250000000,"timeout_ns":31000000}"#,
        r#"{"target_bps":700000,"probes":[{"id":3,"rate_bps":2000000,"duration_ns":15000000,"packets":5}],"timeout_ns":52000000}"#,
        r#"{"target_bps":800000,"stream_rates_bps":{"0":700000},"timeout_ns":70000000}"#,
        r#"{"target_bps":900000}"#,
    ];
    let invalid = [
        "",
        "[]",
        r#"{"target_bps":-1}"#,
        r#"{"target_bps":1000000,"ecn":"ce"}"#,
        r#"{"target_bps":1000000,"signals":{"other":1}}"#,
        r#"{"target_bps":1000000,"timeout_ns":1}"#,
    ];
    let text = |lines: &[&str]| {
        let lines = [exec::HELLO].iter().chain(&answers).chain(&answers).chain(lines).chain(&answers);
        lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    };
    let samples: Vec<_> = invalid.iter().map(|line| text(&[line])).chain([text(&[])]).collect();
    mutations::check_mutations("exec", &samples, 3_000, exec::check);
}

#[test]
#[cfg(target_os = "linux")]
fn terms_survive_changes() {
    let samples = [
        r#"{"flows":[{"controller":"googcc","streams":[{"source":"encoder","max_bps":2000000}],"start_bps":300000,"min_bps":30000}],"duration_ms":10000,"seed":1,"tcp":false}"#,
        r#"{"flows":[{"controller":"gcc-2016","config":{"start_probes":0},"streams":[{"source":"audio","max_bps":40000},{"source":"ideal","max_bps":1000000,"priority":0.5,"suspends":true}],"retransmit":false,"fec":"ulpfec","resend_budget":"rtt","start_bps":300000,"min_bps":30000,"stop_ms":9000},{"controller":"nada","streams":[{"source":"encoder","config":{"fps":30},"max_bps":900000}],"start_bps":30000,"min_bps":30000,"start_ms":100,"count":2,"back":true}],"duration_ms":10000,"seed":7,"tcp":true}"#,
    ];
    // Beyond the bounds.
    let stream = r#"{"source":"encoder","max_bps":2000000}"#;
    let nine = [stream; 9].join(",");
    let refused = [
        (stream, &*nine),
        ("10000,", "3600001,"),
        ("2000000", "10000000001"),
        ("30000}", "30000,\"count\":257}"),
        ("googcc", "goog cc"),
    ];
    let refused = refused.map(|(from, to)| samples[0].replacen(from, to, 1).into_bytes());
    let accepted = samples.map(|text| text.as_bytes().to_vec());
    assert!(accepted.iter().all(|sample| terms::check(sample)) && !refused.iter().any(|sample| terms::check(sample)));
    let samples = [&accepted[..], &refused].concat();
    let mut accepted = 0;
    mutations::check_mutations("terms", &samples, 20_000, |bytes| accepted += usize::from(terms::check(bytes)));
    assert!(accepted > 10, "{accepted} accepted");
}
