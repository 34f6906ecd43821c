// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half of `gcc-2016` as an external controller: the half of the library, behind the lines of the protocol. Its runs
//! have the trace hashes of `gcc-2016` itself.
//!
//! It parses the lines on its own, without the types of this crate.

use paceline::Gcc2016Config;
use paceline::{Bounds, Config, Event, Guard, Message, ReceiverReport, RoundTrip, SendHalf, Setup, Signals};
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn rate(value: &Value) -> Rate {
    Rate::from_bps(value.as_u64().expect("a rate is an integer"))
}

fn span(value: &Value) -> TimeDelta {
    TimeDelta::from_nanos(value.as_i64().expect("a time is an integer"))
}

fn setup(value: &Value) -> Setup {
    let packet_size = DataSize::from_bytes(value["packet_size_bytes"].as_u64().expect("a size is an integer"));
    Setup::new(rate(&value["start_bps"]), rate(&value["min_bps"]), rate(&value["max_bps"]))
        .with_packet_size(packet_size)
}

fn handle(half: &mut dyn SendHalf, event: &Value) {
    let now = Time::from_nanos(event["at_ns"].as_i64().expect("a time is an integer"));
    let mut handle = |event: Event<'_>| half.handle_event(now, &event, &mut Signals::disabled());
    match event["type"].as_str() {
        Some("rtt") => {
            let [last, smoothed] = ["last_ns", "smoothed_ns"].map(|key| span(&event["rtt"][key]));
            handle(Event::RoundTrip(&RoundTrip::new(last, smoothed)));
        }
        Some("report") => {
            let fraction_lost = event["fraction_lost"].as_f64().and_then(Fraction::new).expect("a fraction");
            handle(Event::Report(&ReceiverReport::new(fraction_lost)));
        }
        Some("message") if event["message"]["name"] == "remb" => {
            handle(Event::Message(&Message::Remb(rate(&event["message"]["rate_bps"]))));
        }
        Some("bounds") => handle(Event::Bounds(&Bounds::new(rate(&event["min_bps"]), rate(&event["max_bps"])))),
        Some("route") => handle(Event::RouteChange(&setup(&event["setup"]))),
        _ => {}
    }
}

fn main() {
    let mut out = std::io::stdout().lock();
    // The laboratory has the guard around it, so the half has none of its own.
    writeln!(out, "{}", json!({"protocol": 1, "summary": "gcc-2016 behind a pipe", "receive_of": "gcc-2016"})).unwrap();
    let mut half: Option<Guard> = None;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.expect("the input is text")).expect("a line is JSON");
        if message["type"] == "start" {
            half = Gcc2016Config::default().halves(&setup(&message["setup"])).send;
        }
        let half = half.as_mut().expect("the first line is `start`");
        for event in message["events"].as_array().into_iter().flatten() {
            handle(&mut **half, event);
        }
        let d = half.decision();
        let answer = json!({
            "target_bps": d.target.as_bps(),
            "stable_target_bps": d.stable_target.as_bps(),
            "pacing_bps": d.pacing.as_bps(),
            "padding_bps": d.padding.as_bps(),
        });
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
}
