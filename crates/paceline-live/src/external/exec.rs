//! A send half in another process. It sends a line for each event that the program wants at once, with all events since the
//! last line, and waits for the answer.

use crate::external::declared::Declared;
use crate::external::failure::{self, Cause};
use crate::external::process::Process;
use crate::external::protocol::{
    Answer, Delivery, Ecn, Event, EventKind, Hello, Input, PROTOCOL, Packet, ReceiverMessage, TimedEvent, Window,
};
use crate::external::timer::Timer;
use paceline::{Decision, Failure, Feedback, Message, ProbeCluster, ReceiverReport, SendHalf, Setup, Signals};
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Debug, Formatter};
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
#[derive(Debug)]
pub struct Program {
    /// The name of the controller.
    pub name: &'static str,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its first line.
    pub hello: Hello,
    /// What it declares.
    pub declared: Declared,
}

impl Program {
    /// Starts the program, reads its first line, and ends it.
    pub fn introduce(name: &'static str, words: Vec<String>) -> Result<Self, (Cause, Vec<String>)> {
        let mut process = Process::start(&words).map_err(|cause| (cause, Vec::new()))?;
        let hello = match read_hello(&mut process) {
            Ok(hello) => hello,
            Err(cause) => return Err((cause, process.end())),
        };
        let declared = match Declared::new(&hello) {
            Ok(declared) => declared,
            Err(problem) => return Err((Cause::Invalid { problem }, process.end())),
        };
        Ok(Self { name, words, hello, declared })
    }

    fn delivery(&self, kind: EventKind) -> Delivery {
        self.hello.events.get(&kind).copied().unwrap_or(kind.default_delivery())
    }
}

fn read_hello(process: &mut Process) -> Result<Hello, Cause> {
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

/// The connection to the program.
enum Link {
    /// The program starts when the decision is first needed: many halves are built to check a scenario only.
    New,
    Running(Process),
    /// The half failed.
    Failed,
}

struct State {
    link: Link,
    /// Why the half failed, until it is taken.
    failure: Option<Failure>,
    decision: Decision,
    timer: Timer,
    probes: VecDeque<ProbeCluster>,
    rates: BTreeMap<StreamId, Rate>,
    /// The line that is being written, and its number of events.
    line: Vec<u8>,
    events: usize,
}

/// A send half whose decisions another process makes.
pub struct ExecSendHalf {
    program: Arc<Program>,
    setup: Setup,
    parameters: BTreeMap<String, f64>,
    state: RefCell<State>,
    packets: Vec<Packet>,
}

impl Debug for ExecSendHalf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let state = self.state.borrow();
        f.debug_struct("ExecSendHalf")
            .field("program", &self.program.name)
            .field("decision", &state.decision)
            .field("timer", &state.timer)
            .finish_non_exhaustive()
    }
}

/// A process cannot be copied. A copy of a half that has not started starts its own; any other copy ends its run.
impl Clone for ExecSendHalf {
    fn clone(&self) -> Self {
        let copy = Self::new(Arc::clone(&self.program), self.setup, self.parameters.clone());
        if !matches!(self.state.borrow().link, Link::New) {
            let problem = "its state cannot be copied: a process exists once".to_owned();
            copy.state.borrow_mut().fail(&Cause::Invalid { problem });
        }
        copy
    }
}

impl ExecSendHalf {
    /// Creates a half that has not started its program.
    pub fn new(program: Arc<Program>, setup: Setup, parameters: BTreeMap<String, f64>) -> Self {
        let state = State {
            link: Link::New,
            failure: None,
            decision: Decision::new(setup.start),
            timer: Timer::default(),
            probes: VecDeque::new(),
            rates: BTreeMap::new(),
            line: Vec::new(),
            events: 0,
        };
        Self { program, setup, parameters, state: RefCell::new(state), packets: Vec::new() }
    }

    /// Starts the program if it has not been started.
    fn start(&self) {
        let state = &mut *self.state.borrow_mut();
        if matches!(state.link, Link::New)
            && let Err(cause) = self.try_start(state)
        {
            state.fail(&cause);
        }
    }

    fn try_start(&self, state: &mut State) -> Result<(), Cause> {
        let mut process = Process::start(&self.program.words)?;
        let hello = read_hello(&mut process);
        state.link = Link::Running(process);
        if hello? != self.program.hello {
            let problem = "the hello differs from that of the last start; it must always be the same".to_owned();
            return Err(Cause::Invalid { problem });
        }
        let input = Input::Start { setup: (&self.setup).into(), parameters: self.parameters.clone() };
        state.line.clear();
        serde_json::to_writer(&mut state.line, &input).expect("the types are JSON");
        state.line.push(b'\n');
        state.exchange(&self.program, Time::ZERO, &mut Signals::disabled())
    }

    /// Adds an event to the line, if the program wants it, and sends the line if it needs an answer.
    fn handle(&mut self, now: Time, kind: EventKind, signals: Option<&mut Signals>, event: Event<'_>) {
        let delivery = self.program.delivery(kind);
        if delivery == Delivery::Never {
            return;
        }
        self.start();
        let state = self.state.get_mut();
        if matches!(state.link, Link::Failed) {
            return;
        }
        let before: &[u8] = if state.events == 0 { br#"{"type":"events","events":["# } else { b"," };
        if state.events == 0 {
            state.line.clear();
        }
        state.line.extend_from_slice(before);
        let event = TimedEvent { at_ns: now.as_nanos(), event };
        serde_json::to_writer(&mut state.line, &event).expect("the types are JSON");
        state.events += 1;
        if delivery == Delivery::Now || state.events == EVENTS_MAX {
            let result = state.flush(&self.program, now, signals.unwrap_or(&mut Signals::disabled()));
            result.unwrap_or_else(|cause| state.fail(&cause));
        }
    }
}

impl State {
    fn fail(&mut self, cause: &Cause) {
        self.timer.stop();
        self.events = 0;
        let messages = match std::mem::replace(&mut self.link, Link::Failed) {
            Link::Running(process) => process.end(),
            _ => Vec::new(),
        };
        self.failure.get_or_insert_with(|| failure::failure(cause, messages));
    }

    fn flush(&mut self, program: &Program, now: Time, signals: &mut Signals) -> Result<(), Cause> {
        self.events = 0;
        self.line.extend_from_slice(br#"],"now_ns":"#);
        self.line.extend_from_slice(now.as_nanos().to_string().as_bytes());
        self.line.extend_from_slice(b"}\n");
        self.exchange(program, now, signals)
    }

    /// Sends the line and applies the answer.
    fn exchange(&mut self, program: &Program, now: Time, signals: &mut Signals) -> Result<(), Cause> {
        let Link::Running(process) = &mut self.link else { return Ok(()) };
        let limit = Duration::from_millis(program.hello.answer_timeout_ms.into());
        process.write(&self.line, limit)?;
        let answer: Answer<'_> = parsed(process.read(limit)?, "the answer")?;
        let invalid = |problem: String| Err(Cause::Invalid { problem });
        for (name, value) in &answer.signals {
            let Some(index) = program.declared.send_signals.iter().position(|signal| signal.name == name) else {
                return invalid(format!("the signal `{name}` is not in the hello; add it to `signals`"));
            };
            signals.emit_index(index as u8, *value);
        }
        if answer.ecn == Ecn::Ce {
            return invalid("`ecn` must be not-ect, ect0 or ect1: only routers send ce".to_owned());
        }
        self.decision = decision(&answer);
        self.timer.set(now, answer.timeout_ns.map(Time::from_nanos));
        self.probes.extend(answer.probes.iter().map(|probe| {
            ProbeCluster::new(probe.id, Rate::from_bps(probe.rate_bps), duration(probe.duration_ns), probe.packets)
        }));
        self.rates.clear();
        self.rates.extend(answer.stream_rates_bps.iter().map(|(id, bps)| (StreamId(*id), Rate::from_bps(*bps))));
        Ok(())
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

impl SendHalf for ExecSendHalf {
    fn handle_event(&mut self, now: Time, event: &paceline::Event<'_>, signals: &mut Signals) {
        match *event {
            paceline::Event::Sent(packet) => {
                self.handle(now, EventKind::Sent, None, Event::Sent { packet: packet.into() })
            }
            paceline::Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            paceline::Event::RoundTrip(rtt) => {
                self.handle(now, EventKind::Rtt, Some(signals), Event::Rtt { rtt: rtt.into() })
            }
            paceline::Event::Report(report) => self.handle_report(now, report, signals),
            paceline::Event::Message(message) => self.handle_message(now, message, signals),
            paceline::Event::Liveness => self.handle(now, EventKind::Liveness, None, Event::Liveness),
            paceline::Event::Stream(stream) => {
                self.handle(now, EventKind::Stream, None, Event::Stream { stream: stream.into() })
            }
            paceline::Event::StreamRemoved(stream) => {
                self.handle(now, EventKind::StreamRemoved, None, Event::StreamRemoved { stream: stream.0 })
            }
            paceline::Event::Frame(frame) => self.handle(now, EventKind::Frame, None, frame.into()),
            paceline::Event::ApplicationLimit(limited) => {
                self.handle(now, EventKind::ApplicationLimit, None, Event::ApplicationLimit { limited })
            }
            paceline::Event::Bounds(bounds) => self.handle(now, EventKind::Bounds, Some(signals), bounds.into()),
            paceline::Event::RouteChange(setup) => {
                self.handle(now, EventKind::Route, Some(signals), Event::Route { setup: setup.into() })
            }
            paceline::Event::Availability(available) => {
                self.handle(now, EventKind::Availability, None, Event::Availability { available })
            }
            paceline::Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.program.delivery(EventKind::Sent) == Delivery::Now
    }

    fn poll_timeout(&self) -> Option<Time> {
        let state = self.state.borrow();
        if state.failure.is_some() { Some(Time::ZERO) } else { state.timer.due() }
    }

    fn decision(&self) -> Decision {
        self.start();
        self.state.borrow().decision
    }

    fn poll_probe(&mut self, _: Time) -> Option<ProbeCluster> {
        self.state.get_mut().probes.pop_front()
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        self.state.borrow().rates.get(&stream).copied()
    }

    fn poll_failure(&mut self) -> Option<Failure> {
        self.state.get_mut().failure.take()
    }
}

impl ExecSendHalf {
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let mut packets = std::mem::take(&mut self.packets);
        packets.clear();
        packets.extend(feedback.packets.iter().map(Packet::from));
        let event = Event::Feedback {
            packets: Cow::Borrowed(&packets),
            outstanding_bytes: feedback.outstanding.as_bytes(),
            after_highest_bytes: feedback.after_highest.as_bytes(),
            rtt: feedback.rtt.as_ref().map(Into::into),
        };
        self.handle(now, EventKind::Feedback, Some(signals), event);
        self.packets = packets;
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        let event = Event::Report { fraction_lost: report.fraction_lost.get() };
        self.handle(now, EventKind::Report, Some(signals), event);
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        if let Some(message) = ReceiverMessage::new(message) {
            self.handle(now, EventKind::Message, Some(signals), Event::Message { message });
        }
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let expired = self.state.get_mut().timer.expire();
        self.handle(now, EventKind::Timeout, Some(signals), Event::Timeout);
        let state = self.state.get_mut();
        if let Err(problem) = state.timer.check_after(now, expired) {
            state.fail(&Cause::Invalid { problem });
        }
    }
}
