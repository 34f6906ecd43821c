// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a program that runs a controller (`exec:`): a line that is no valid answer ends the controller and changes no target.

use paceline::{Controller, NewFrame, Outgoing, PacketKind, Sender, SenderConfig, Setup, Signals, StreamConfig};
use paceline_live::external::Cause;
use paceline_live::external::{Channel, ExternalHalf, Program, ProgramHalf};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The first line of a program that answers most events and declares a signal.
pub const HELLO: &str =
    r#"{"protocol":1,"events":{"sent":"now","frame":"now","rtt":"now"},"signals":[{"name":"queue"}]}"#;

const STREAM: StreamId = StreamId(0);

/// The members of an answer.
const MEMBERS: [&str; 13] = [
    "target_bps",
    "stable_target_bps",
    "pacing_bps",
    "burst_ns",
    "tick_ns",
    "window",
    "padding_bps",
    "ecn",
    "queue_max_ns",
    "timeout_ns",
    "probes",
    "stream_rates_bps",
    "signals",
];

static PROGRAM: LazyLock<Program> =
    LazyLock::new(|| Program::introduce::<Lines>(vec![HELLO.to_owned()]).expect("the hello is valid"));

thread_local! {
    /// The answers that were read; `None` at the end of the lines.
    static ANSWERS: RefCell<Vec<Option<Vec<u8>>>> = const { RefCell::new(Vec::new()) };
}

/// A program that writes these lines.
#[derive(Debug)]
struct Lines {
    rest: std::vec::IntoIter<Vec<u8>>,
    line: Vec<u8>,
    is_greeted: bool,
}

impl Channel for Lines {
    /// Each character of the first word is a byte.
    fn start(words: &[String]) -> Result<Self, Cause> {
        let bytes: Vec<u8> = words[0].chars().map(|byte| byte as u8).collect();
        let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        Ok(Self { rest: lines.into_iter(), line: Vec::new(), is_greeted: false })
    }

    fn write(&mut self, line: &[u8], _: Duration) -> Result<(), Cause> {
        assert!(serde_json::from_slice::<Value>(line).is_ok() && line.ends_with(b"\n"), "a line is JSON");
        Ok(())
    }

    fn read(&mut self, _: Duration) -> Result<&[u8], Cause> {
        let line = self.rest.next();
        if std::mem::replace(&mut self.is_greeted, true) {
            ANSWERS.with_borrow_mut(|answers| answers.push(line.clone()));
        }
        self.line = line.ok_or(Cause::Exited { status: None })?;
        Ok(&self.line)
    }

    fn end(self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the target of an answer.
fn target(answer: &[u8]) -> Rate {
    let value: Value = serde_json::from_slice(answer).expect("an answer is JSON");
    let members = value.as_object().expect("an answer is an object");
    assert!(members.keys().all(|name| MEMBERS.contains(&&**name)), "{value}");
    let is_declared = |signals: &Value| signals.as_object().is_some_and(|all| all.keys().all(|name| name == "queue"));
    assert!(members.get("signals").is_none_or(is_declared) && value["ecn"] != "ce", "{value}");
    Rate::from_bps(value["target_bps"].as_u64().expect("an answer has a target"))
}

/// Checks one input: the lines of a program.
pub fn check(bytes: &[u8]) {
    ANSWERS.with_borrow_mut(Vec::clear);
    let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(10_000));
    let words = vec![bytes.iter().map(|byte| char::from(*byte)).collect()];
    let program = Program { words, ..PROGRAM.clone() };
    let half = ProgramHalf::<Lines>::new(Arc::new(program), setup, BTreeMap::new());
    let controller = Controller::from_sender(ExternalHalf::new(Ok(half), &setup));
    let mut config = SenderConfig::new(&setup);
    config.per_packet = Some(true);
    let mut sender = Sender::new(&config, &mut { controller }, Signals::enabled());
    sender.add_stream(&StreamConfig::video(STREAM, Rate::ZERO, Rate::MAX));
    let mut now = Time::ZERO;
    while check_target(&sender, setup.start) {
        now += TimeDelta::from_millis(20);
        step(&mut sender, now);
        while sender.poll_event().is_some() {}
    }
}

/// Checks the target after some answers. Returns whether the controller still runs.
fn check_target(sender: &Sender<u64>, start: Rate) -> bool {
    let failure = sender.failure().map(ToString::to_string);
    ANSWERS.with_borrow(|answers| {
        // At the end of the lines and after an invalid line, the answer before counts.
        let valid = answers.len() - usize::from(failure.is_some()).min(answers.len());
        let last = answers[..valid].last().map(|answer| target(answer.as_ref().expect("lines end with a failure")));
        assert_eq!(sender.target(), last.unwrap_or(start), "{failure:?}");
    });
    failure.is_none_or(|text| {
        assert!(!text.is_empty());
        false
    })
}

/// Lets 20 ms pass: a frame, packets that leave, a report on one of them, and a round trip.
fn step(sender: &mut Sender<u64>, now: Time) {
    let size = DataSize::from_bytes(1200);
    let _ = sender.push_frame(now, &NewFrame::new(STREAM, now, false), [(7, size), (8, size)]);
    sender.handle_timeout(now);
    for _ in 0..4 {
        if sender.poll_transmit(now).is_none() {
            break;
        }
    }
    let number = sender.handle_sent(now, &Outgoing::new(size, STREAM, PacketKind::Media));
    sender.handle_reports(now, [(number, Some(RemoteTime::from_nanos(now.as_nanos())), None)]);
    sender.handle_rtt(now, TimeDelta::from_millis(40));
    sender.handle_loss(now, Fraction::ZERO);
}
