// SPDX-License-Identifier: MIT OR Apache-2.0
//! One endpoint of a call with any other WebRTC implementation. Session descriptions are read and written as JSON strings,
//! one per line (stdin, stdout). Statistics are printed every second (stderr).
//!
//! ```console
//! endpoint receive ADDRESS:PORT SECONDS remb 300@0 1000@10      # REMB 300 kbit/s, and 1000 kbit/s from second 10
//! endpoint receive ADDRESS:PORT SECONDS gcc-2016
//! endpoint send ADDRESS:PORT SECONDS gcc-tfb
//! ```

mod remb_steps;

use paceline::Registry;
use paceline_browser::call::endpoint::Endpoint;
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::timing::{Role, Timing, enter_realtime};
use paceline_netsim::network::FlowEnd;
use paceline_netsim::records::EventRecord;
use paceline_scenario::{self, Changes, Origin};
use paceline_units::{RandomStreams, Rate, Time, TimeDelta};
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::mpsc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().ok_or(format!("{what} is missing"));
    let (role, at) = (next("receive or send")?, next("ADDRESS:PORT")?.parse()?);
    let seconds: i64 = next("SECONDS")?.parse()?;
    let controller = next("a controller")?;
    let steps = args.map(|step| parse_step(&step)).collect::<Result<Vec<_>, _>>()?;
    let mut registry = Registry::standard();
    registry.add(remb_steps::remb(steps));

    let text = SCENARIO.replace("CONTROLLER", &controller);
    let scenario = paceline_scenario::load(&Origin::from_text("endpoint", &text), &Changes::default(), &registry)
        .map_err(|problem| format!("{problem:?}"))?;
    let (flow, streams) = (&scenario.plan.flows[0], RandomStreams::new(1));
    let (end, source) = if role == "send" { (FlowEnd::Sender, source()) } else { (FlowEnd::Receiver, None) };
    let mut endpoint = Endpoint::new(end, (0, flow), (&registry, &streams, true), at, source)?;
    let mut lines = io::stdin().lock().lines();
    let mut read_sdp = || -> Result<String, Box<dyn Error>> {
        Ok(serde_json::from_str(&lines.next().ok_or("stdin ended before the session description")??)?)
    };
    let write_sdp = |sdp: String| -> Result<(), Box<dyn Error>> {
        println!("{}", serde_json::to_string(&sdp)?);
        Ok(io::stdout().flush()?)
    };
    if end == FlowEnd::Sender {
        write_sdp(endpoint.offer()?)?;
        endpoint.accept(&read_sdp()?)?;
    } else {
        write_sdp(endpoint.answer(&read_sdp()?)?)?;
    }

    enter_realtime(Role::Endpoint);
    let clock = Monotonic::starting_in(TimeDelta::ZERO);
    let (sender, events) = mpsc::channel();
    let mut summary = Summary::default();
    let mut print_at = Time::from_secs(1);
    while clock.now() < Time::from_secs(seconds) {
        endpoint.serve(clock.now(), &clock, &sender)?;
        events.try_iter().for_each(|event| summary.add(&event));
        if clock.now() >= print_at {
            eprintln!("{:3} s {}", print_at.as_secs_f64(), std::mem::take(&mut summary));
            print_at += TimeDelta::from_secs(1);
        }
        let due = endpoint.timeout().min(print_at);
        Timing::Sleep.wait(&[endpoint.socket()], due - clock.now());
    }
    endpoint.close();
    Ok(())
}

const SCENARIO: &str = r#"
id = "endpoint"
title = "One endpoint of a call"
duration = "1h"
[path.forward]
capacity = "100Mbps"
[[flow]]
id = "video"
controller = "CONTROLLER"
start_rate = "300kbps"
encoder = { max = "2.5Mbps" }
"#;

/// Statistics of one second.
#[derive(Default)]
struct Summary {
    frames: u32,
    bytes: u64,
    delay_ms: f64,
    dropped: u32,
    remb: Option<Rate>,
    target: Option<Rate>,
    rtt: Option<TimeDelta>,
    lost: f64,
    refused: u32,
}

impl Summary {
    fn add(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Frame { at, captured, size, dropped, .. } => {
                self.frames += 1;
                self.bytes += size.as_bytes();
                self.dropped += *dropped as u32;
                self.delay_ms += (*at - *captured).as_secs_f64() * 1e3;
            }
            EventRecord::Remb { rate, .. } => self.remb = Some(*rate),
            EventRecord::Decision { target, .. } => self.target = Some(*target),
            EventRecord::RoundTrip { rtt, .. } => self.rtt = Some(*rtt),
            EventRecord::FractionLost { fraction, .. } => self.lost = *fraction,
            EventRecord::FrameDropped { .. } => self.refused += 1,
            _ => {}
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { frames, bytes, dropped, remb, target, rtt, lost, refused, delay_ms } = self;
        let (kbit, delay) = (bytes * 8 / 1000, delay_ms / f64::from(*frames).max(1.0));
        write!(f, "{frames} frames, {kbit} kbit, delay {delay:.1} ms, {dropped} dropped, {refused} refused; ")?;
        write!(f, "remb {remb:?} target {target:?} rtt {rtt:?} lost {lost:.3}")
    }
}

#[cfg(not(feature = "video"))]
fn source() -> Option<Box<dyn paceline_browser::call::endpoint::MakeSource>> {
    None
}

#[cfg(feature = "video")]
fn source() -> Option<Box<dyn paceline_browser::call::endpoint::MakeSource>> {
    use paceline_browser::call::endpoint::video::{Vp8, gradient};
    Some(Box::new(Vp8(Box::new(gradient))))
}

fn parse_step(text: &str) -> Result<(TimeDelta, Rate), Box<dyn Error>> {
    let (kbps, at) = text.split_once('@').ok_or("a step is KBPS@SECOND")?;
    Ok((TimeDelta::from_secs(at.parse()?), Rate::from_kbps(kbps.parse::<u32>()?.into())))
}
