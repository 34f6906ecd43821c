//! One end of a call for whoever speaks WebRTC: session descriptions come and go as lines of JSON text (stdin, stdout), and
//! what it does is told each second (stderr).
//!
//! ```console
//! end receive ADDRESS:PORT SECONDS remb 300@0 1000@10      # asks for 300 kbit/s, from the tenth second on for 1000
//! end receive ADDRESS:PORT SECONDS gcc-2016
//! end send ADDRESS:PORT SECONDS gcc-tfb
//! ```

mod steps;

use paceline::Registry;
use paceline_call::endpoint::Endpoint;
use paceline_lab::rows::Row;
use paceline_lab::scenario::{self, Changes, Origin};
use paceline_live::clock::Monotonic;
use paceline_live::wait::{Rank, Timing, be_punctual};
use paceline_units::{Rate, Streams, Time, TimeDelta};
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
    registry.add(steps::remb(steps));

    let text = SCENARIO.replace("CONTROLLER", &controller);
    let plan = scenario::load(&Origin::from_text("end", &text), &Changes::default(), &registry)
        .map_err(|problem| format!("{problem:?}"))?;
    let (flow, streams) = (&plan.flows[0], Streams::new(1));
    let media = flow.media().ok_or("no media")?;
    let mut lines = io::stdin().lock().lines();
    let mut line = || -> Result<String, Box<dyn Error>> {
        Ok(serde_json::from_str(&lines.next().ok_or("no description came")??)?)
    };
    let say = |sdp: String| -> Result<(), Box<dyn Error>> {
        println!("{}", serde_json::to_string(&sdp)?);
        Ok(io::stdout().flush()?)
    };
    let mut end = match role.as_str() {
        "send" => {
            let source = source();
            let mut end = Endpoint::sender(0, flow, media, &registry, &streams, true, at, source)?;
            say(end.offer()?)?;
            end.accept(&line()?)?;
            end
        }
        _ => {
            let mut end = Endpoint::receiver(0, flow, media, &registry, &streams, true, at)?;
            say(end.answer(&line()?)?)?;
            end
        }
    };

    be_punctual(Rank::End);
    let clock = Monotonic::starting_in(TimeDelta::ZERO);
    let (to, rows) = mpsc::channel();
    let mut second = Second::default();
    let mut told_at = Time::from_secs(1);
    while clock.now() < Time::from_secs(seconds) {
        end.serve(clock.now(), &clock, &to)?;
        rows.try_iter().for_each(|row| second.add(&row));
        if clock.now() >= told_at {
            eprintln!("{:3} s {}", told_at.as_secs_f64(), std::mem::take(&mut second));
            told_at += TimeDelta::from_secs(1);
        }
        let due = end.timeout().min(told_at);
        Timing::Sleep.wait(&[end.socket()], due - clock.now());
    }
    end.close();
    Ok(())
}

const SCENARIO: &str = r#"
id = "end"
title = "One end of a call"
duration = "1h"
[path.forward]
capacity = "100Mbps"
[[flow]]
id = "video"
controller = "CONTROLLER"
start_rate = "300kbps"
encoder = { max = "2.5Mbps" }
"#;

/// What a second came to.
#[derive(Default)]
struct Second {
    frames: u32,
    bytes: u64,
    late_ms: f64,
    dropped: u32,
    remb: Option<Rate>,
    target: Option<Rate>,
    rtt: Option<TimeDelta>,
    lost: f64,
    refused: u32,
}

impl Second {
    fn add(&mut self, row: &Row) {
        match row {
            Row::Frame { at, captured, size, dropped, .. } => {
                self.frames += 1;
                self.bytes += size.as_bytes();
                self.dropped += *dropped as u32;
                self.late_ms += (*at - *captured).as_secs_f64() * 1e3;
            }
            Row::Remb { rate, .. } => self.remb = Some(*rate),
            Row::Decision { target, .. } => self.target = Some(*target),
            Row::RoundTrip { rtt, .. } => self.rtt = Some(*rtt),
            Row::FractionLost { fraction, .. } => self.lost = *fraction,
            Row::FrameRefused { .. } => self.refused += 1,
            _ => {}
        }
    }
}

impl std::fmt::Display for Second {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { frames, bytes, dropped, remb, target, rtt, lost, refused, late_ms } = self;
        let (kbps, late) = (bytes * 8 / 1000, late_ms / f64::from(*frames).max(1.0));
        write!(
            f,
            "frames {frames} of {kbps} kbit, {late:.1} ms after capture, {dropped} given up, {refused} refused; "
        )?;
        write!(f, "remb {remb:?} target {target:?} rtt {rtt:?} lost {lost:.3}")
    }
}

#[cfg(not(feature = "video"))]
fn source() -> Option<Box<dyn paceline_call::endpoint::MakeSource>> {
    None
}

#[cfg(feature = "video")]
fn source() -> Option<Box<dyn paceline_call::endpoint::MakeSource>> {
    Some(Box::new(paceline_call::endpoint::video::Vp8::new(Box::new(paceline_call::endpoint::video::gradient))))
}

fn parse_step(text: &str) -> Result<(TimeDelta, Rate), Box<dyn Error>> {
    let (kbps, at) = text.split_once('@').ok_or("a step is KBPS@SECOND")?;
    Ok((TimeDelta::from_secs(at.parse()?), Rate::from_kbps(kbps.parse::<u32>()?.into())))
}
