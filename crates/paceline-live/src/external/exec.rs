// SPDX-License-Identifier: MIT OR Apache-2.0
//! A send half in another process. It sends a line for each event that the program wants at once, with all events since the
//! last line, and waits for the answer.

use crate::external::declared::Declared;
use crate::external::failure::Cause;
use crate::external::half::{Backend, Decided};
use crate::external::process::{Channel, Process};
use crate::external::protocol::{Answer, Delivery, Ecn, Event, EventKind, Hello, Input, PROTOCOL, TimedEvent, Window};
use paceline::{Decision, ProbeCluster, Setup, Signals};
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a program may take to start.
const START_MAX: Duration = Duration::from_secs(30);
/// The longest time that a hello may ask for.
const ANSWER_MAX_MS: u32 = 600_000;
/// The number of events at which a line is sent even if none of them needs an answer.
const EVENTS_MAX: usize = 1024;
/// The number of characters of an invalid line that an error shows.
const SHOWN_MAX: usize = 160;

/// A program that runs a controller.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its first line.
    pub hello: Hello,
    /// What it declares.
    pub declared: Declared,
}

impl Program {
    /// Starts the program, reads its first line, and ends it.
    pub fn introduce<C: Channel>(words: Vec<String>) -> Result<Self, (Cause, Vec<String>)> {
        let mut process = C::start(&words).map_err(|cause| (cause, Vec::new()))?;
        let hello = match read_hello(&mut process) {
            Ok(hello) => hello,
            Err(cause) => return Err((cause, process.end())),
        };
        let declared = match Declared::new(&hello) {
            Ok(declared) => declared,
            Err(problem) => return Err((Cause::Invalid { problem }, process.end())),
        };
        Ok(Self { words, hello, declared })
    }

    fn delivery(&self, kind: EventKind) -> Delivery {
        self.hello.events.get(&kind).copied().unwrap_or(kind.default_delivery())
    }
}

fn read_hello(process: &mut impl Channel) -> Result<Hello, Cause> {
    let line = process.read(START_MAX)?;
    let hello: Hello = parsed(line, "its first line, the hello")?;
    let invalid = |problem: String| Err(Cause::Invalid { problem });
    if hello.protocol != PROTOCOL {
        return invalid(format!("the protocol of the hello is {}; this program has {PROTOCOL}", hello.protocol));
    }
    if !(1..=ANSWER_MAX_MS).contains(&hello.answer_timeout_ms) {
        return invalid(format!(
            "answer_timeout_ms must be from 1 to {ANSWER_MAX_MS}, not {}",
            hello.answer_timeout_ms
        ));
    }
    Ok(hello)
}

fn parsed<'a, T: serde::Deserialize<'a>>(line: &'a [u8], what: &str) -> Result<T, Cause> {
    serde_json::from_slice(line).map_err(|error| {
        let text = String::from_utf8_lossy(line);
        let mut shown: String = text.chars().take(SHOWN_MAX).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Cause::Invalid { problem: format!("{what} is `{shown}`: {error}") }
    })
}

/// A program that makes the decisions of a half.
#[derive(Debug)]
pub struct ProgramHalf<C = Process> {
    program: Arc<Program>,
    setup: Setup,
    parameters: BTreeMap<String, f64>,
    /// The program starts when the decision is first needed: many halves are built to check a scenario only.
    process: Option<C>,
    rates: BTreeMap<StreamId, Rate>,
    /// The line that is being written, and its number of events.
    line: Vec<u8>,
    events: usize,
}

impl<C: Channel> ProgramHalf<C> {
    /// Creates a half that has not started its program.
    pub fn new(program: Arc<Program>, setup: Setup, parameters: BTreeMap<String, f64>) -> Self {
        let (process, rates, line, events) = Default::default();
        Self { program, setup, parameters, process, rates, line, events }
    }

    fn write(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.line, value).expect("the types are JSON");
    }

    /// Sends the line, and returns the decision of the answer.
    fn exchange(&mut self, signals: &mut Signals) -> Result<Option<Decided>, Cause> {
        let process = self.process.as_mut().expect("it has started");
        let limit = Duration::from_millis(self.program.hello.answer_timeout_ms.into());
        process.write(&self.line, limit)?;
        let answer: Answer<'_> = parsed(process.read(limit)?, "the answer")?;
        let invalid = |problem: String| Err(Cause::Invalid { problem });
        for (name, value) in &answer.signals {
            let Some(index) = self.program.declared.send_signals.iter().position(|signal| signal.name == name) else {
                return invalid(format!("the signal `{name}` is not in the hello; add it to `signals`"));
            };
            signals.emit_index(index as u8, *value);
        }
        if answer.ecn == Ecn::Ce {
            return invalid("`ecn` must be not-ect, ect0 or ect1: only routers send ce".to_owned());
        }
        self.rates = answer.stream_rates_bps.iter().map(|(id, bps)| (StreamId(*id), Rate::from_bps(*bps))).collect();
        let probes = answer.probes.iter().map(|probe| {
            ProbeCluster::new(probe.id, Rate::from_bps(probe.rate_bps), duration(probe.duration_ns), probe.packets)
        });
        let timeout = answer.timeout_ns.map(Time::from_nanos);
        Ok(Some(Decided { decision: decision(&answer), timeout, probes: probes.collect() }))
    }
}

fn duration(ns: u64) -> TimeDelta {
    TimeDelta::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn decision(answer: &Answer<'_>) -> Decision {
    let rate = |bps: Option<u64>| Rate::from_bps(bps.unwrap_or(answer.target_bps));
    Decision::new(Rate::from_bps(answer.target_bps))
        .with_stable_target(rate(answer.stable_target_bps))
        .with_pacing(rate(answer.pacing_bps))
        .with_burst(duration(answer.burst_ns))
        .with_tick(duration(answer.tick_ns))
        .with_window(answer.window.map(|window| match window {
            Window::OutstandingBytes(bytes) => paceline::Window::Outstanding(DataSize::from_bytes(bytes)),
            Window::AfterHighestBytes(bytes) => paceline::Window::AfterHighest(DataSize::from_bytes(bytes)),
        }))
        .with_padding(Rate::from_bps(answer.padding_bps))
        .with_ecn(match answer.ecn {
            Ecn::NotEct => paceline_units::Ecn::NotEct,
            Ecn::Ect0 => paceline_units::Ecn::Ect0,
            Ecn::Ect1 => paceline_units::Ecn::Ect1,
            Ecn::Ce => paceline_units::Ecn::Ce,
        })
        .with_queue_max(answer.queue_max_ns.map_or(TimeDelta::MAX, duration))
}

impl<C: Channel> Backend for ProgramHalf<C> {
    fn start(&mut self) -> Result<Option<Decided>, Cause> {
        if self.process.is_some() {
            return Ok(None);
        }
        let process = self.process.insert(C::start(&self.program.words)?);
        if read_hello(process)? != self.program.hello {
            let problem = "the hello differs from that of the last start; it must always be the same".to_owned();
            return Err(Cause::Invalid { problem });
        }
        self.write(&Input::Start { setup: (&self.setup).into(), parameters: self.parameters.clone() });
        self.line.push(b'\n');
        self.exchange(&mut Signals::disabled())
    }

    /// Adds an event to the line, if the program wants it, and sends the line if it needs an answer.
    fn handle(
        &mut self,
        now: Time,
        event: &paceline::Event<'_>,
        signals: &mut Signals,
    ) -> Result<Option<Decided>, Cause> {
        let Some((kind, event)) = Event::of(event) else { return Ok(None) };
        let delivery = self.program.delivery(kind);
        if delivery == Delivery::Never {
            return Ok(None);
        }
        if self.events == 0 {
            self.line.clear();
        }
        let before: &[u8] = if self.events == 0 { br#"{"type":"events","events":["# } else { b"," };
        self.line.extend_from_slice(before);
        self.write(&TimedEvent { at_ns: now.as_nanos(), event });
        self.events += 1;
        if delivery == Delivery::Later && self.events < EVENTS_MAX {
            return Ok(None);
        }
        self.events = 0;
        self.line.extend_from_slice(format!("],\"now_ns\":{}}}\n", now.as_nanos()).as_bytes());
        self.exchange(signals)
    }

    fn decides_on_sent(&self) -> bool {
        self.program.delivery(EventKind::Sent) == Delivery::Now
    }

    fn stream_rate(&mut self, stream: StreamId) -> Result<Option<Rate>, Cause> {
        Ok(self.rates.get(&stream).copied())
    }

    /// A copy of a half that has not started starts its own process.
    fn copy(&self) -> Result<Self, Cause> {
        match self.process {
            None => Ok(Self::new(Arc::clone(&self.program), self.setup, self.parameters.clone())),
            Some(_) => Err(Self::invalid("its state cannot be copied: a process exists once".to_owned())),
        }
    }

    fn end(self) -> Vec<String> {
        self.process.map_or(Vec::new(), C::end)
    }

    fn invalid(problem: String) -> Cause {
        Cause::Invalid { problem }
    }
}
