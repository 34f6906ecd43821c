//! A send half in a shared library: `lib:PATH`. Its functions are called in this process, with the events that a program gets
//! by `exec:`.

mod convert;
mod table;

use crate::external::declared::Declared;
use crate::external::failure::Cause;
use crate::external::protocol::{FeedbackFormat, Hello, ParameterDeclaration, SignalDeclaration};
use crate::external::timer::Timer;
use paceline::{Bounds, Decision, Event, Failure, Feedback, Message, ProbeCluster, SendHalf, Setup, Signals};
use paceline_abi::{
    PACELINE_FEEDBACK_NONE, PACELINE_FEEDBACK_RFC8888, PACELINE_FEEDBACK_TRANSPORT_WIDE, PACELINE_NEVER,
    PacelineControllerV1, PacelineFeedback, PacelinePacketReport, PacelineRoundTrip,
};
use paceline_units::{Rate, StreamId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use table::Instance;

/// The most probe clusters of one event.
const PROBES_MAX: usize = 64;

#[derive(Debug)]
pub struct LibraryController {
    /// The name of the controller.
    pub name: &'static str,
    /// What it declares, in the form of a program's first line.
    pub hello: Hello,
    /// The same in the form of the registry.
    pub declared: Declared,
    table: &'static PacelineControllerV1,
}

impl LibraryController {
    /// Loads a library.
    pub fn load(name: &'static str, path: &str) -> Result<Self, Cause> {
        let table = table::load(path)?;
        let hello = hello(table)?;
        let declared = Declared::new(&hello).map_err(|problem| Cause::Library(format!("is invalid: {problem}")))?;
        Ok(Self { name, hello, declared, table })
    }
}

/// Returns the declarations of a table as a program would write them.
fn hello(table: &PacelineControllerV1) -> Result<Hello, Cause> {
    let table::Declaration { texts: [summary, source, receive_of], signals, parameters } = table::declaration(table)?;
    // Its other members have defaults.
    let mut hello: Hello = serde_json::from_str(r#"{"protocol":1}"#).expect("a program may write this");
    hello.feedback = match table.feedback {
        PACELINE_FEEDBACK_TRANSPORT_WIDE => FeedbackFormat::TransportWide,
        PACELINE_FEEDBACK_RFC8888 => FeedbackFormat::Rfc8888,
        PACELINE_FEEDBACK_NONE => FeedbackFormat::None,
        other => return Err(Cause::Library(format!("is invalid: feedback must be 0, 1 or 2, not {other}"))),
    };
    let or = |ms, default| if ms == 0 { default } else { ms };
    hello.feedback_interval_ms = or(table.feedback_interval_ms, hello.feedback_interval_ms);
    hello.feedback_longest_ms = or(table.feedback_longest_ms, hello.feedback_longest_ms);
    hello.summary = summary.unwrap_or(hello.summary);
    hello.source = source.unwrap_or(hello.source);
    hello.receive_of = receive_of;
    hello.guard = table.unguarded == 0;
    hello.signals =
        signals.into_iter().map(|(name, unit)| SignalDeclaration { name, unit, states: Vec::new() }).collect();
    let parameter = |table::Parameter { texts: [name, unit, description], values: [default, min, max] }| {
        ParameterDeclaration { name, default, min, max, unit, description }
    };
    hello.parameters = parameters.into_iter().map(parameter).collect();
    Ok(hello)
}

/// The state that a library keeps, unless the half failed.
#[derive(Default)]
struct State {
    instance: Option<Instance>,
    /// Why the half failed, until it is taken.
    failure: Option<Failure>,
}

impl State {
    fn fail(&mut self, problem: &str) {
        self.instance = None;
        self.failure.get_or_insert_with(|| Failure::new(format!("failed: {problem}")));
    }
}

/// A send half whose decisions a library makes.
pub struct LibrarySendHalf {
    library: Arc<LibraryController>,
    setup: Setup,
    /// `stream_rate` takes the half by shared reference.
    state: RefCell<State>,
    decision: Decision,
    timer: Timer,
    probes: VecDeque<ProbeCluster>,
    packets: Vec<PacelinePacketReport>,
    signal_values: Vec<f64>,
}

impl Debug for LibrarySendHalf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibrarySendHalf")
            .field("library", &self.library.name)
            .field("decision", &self.decision)
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}

/// A library without `copy` ends the run of a copy.
impl Clone for LibrarySendHalf {
    fn clone(&self) -> Self {
        let instance = self.state.borrow().instance.as_ref().map(|instance| {
            instance.copy().unwrap_or_else(|| Err("its state cannot be copied: the function `copy` is null".to_owned()))
        });
        let mut copy = Self {
            library: Arc::clone(&self.library),
            setup: self.setup,
            state: RefCell::default(),
            decision: self.decision,
            timer: self.timer,
            probes: self.probes.clone(),
            packets: Vec::new(),
            signal_values: self.signal_values.clone(),
        };
        match instance.transpose() {
            Ok(instance) => copy.state.get_mut().instance = instance,
            Err(problem) => copy.state.get_mut().fail(&problem),
        }
        copy
    }
}

impl LibrarySendHalf {
    /// Creates a half with a state of its own. `parameters` has the order of the declaration.
    pub fn new(library: Arc<LibraryController>, setup: Setup, parameters: &[f64]) -> Self {
        let created = Instance::create(library.table, &convert::limits(&setup), parameters);
        let signal_values = vec![f64::NAN; library.declared.send_signals.len()];
        let mut half = Self {
            library,
            setup,
            state: RefCell::default(),
            decision: Decision::new(setup.start),
            timer: Timer::default(),
            probes: VecDeque::new(),
            packets: Vec::new(),
            signal_values,
        };
        match created {
            Ok(instance) => {
                half.state.get_mut().instance = Some(instance);
                half.handle(Time::ZERO, None, |_| Ok(true));
            }
            Err(problem) => half.state.get_mut().fail(&problem),
        }
        half
    }

    /// Calls a handler and, if the library has it, reads the decision.
    fn handle(
        &mut self,
        now: Time,
        signals: Option<&mut Signals>,
        call: impl FnOnce(&mut Instance) -> Result<bool, String>,
    ) {
        if let Err(problem) = self.try_handle(now, signals, call) {
            self.timer.stop();
            self.state.get_mut().fail(&problem);
        }
    }

    fn try_handle(
        &mut self,
        now: Time,
        signals: Option<&mut Signals>,
        call: impl FnOnce(&mut Instance) -> Result<bool, String>,
    ) -> Result<(), String> {
        let Some(instance) = &mut self.state.get_mut().instance else { return Ok(()) };
        if !call(instance)? {
            return Ok(());
        }
        let decided = instance.decide(convert::blank_decision(&self.setup))?;
        let decision =
            convert::decision(&decided).map_err(|problem| format!("`decide` wrote invalid data: {problem}"))?;
        let timeout = (decided.timeout_ns != PACELINE_NEVER).then(|| Time::from_nanos(decided.timeout_ns));
        self.decision = decision;
        self.timer.set(now, timeout);
        let mut count = 0;
        while let Some(probe) = instance.poll_probe(now.as_nanos())? {
            count += 1;
            if count > PROBES_MAX || probe.rate_bps == 0 {
                return Err(format!("`poll_probe` wrote more than {PROBES_MAX} probes or one of rate 0"));
            }
            self.probes.push_back(ProbeCluster::new(
                probe.id,
                Rate::from_bps(probe.rate_bps),
                convert::span(probe.duration_ns),
                probe.packets,
            ));
        }
        if let Some(signals) = signals.filter(|signals| signals.is_enabled()) {
            instance.read_signals(&mut self.signal_values)?;
            let values = self.signal_values.iter().enumerate().filter(|(_, value)| !value.is_nan());
            values.for_each(|(index, value)| signals.emit_index(index as u8, *value));
        }
        Ok(())
    }
}

impl SendHalf for LibrarySendHalf {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => {
                self.handle(now, None, |it| it.on_packet_sent(now.as_nanos(), &convert::sent(packet)))
            }
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::RoundTrip(rtt) => {
                self.handle(now, Some(signals), |it| it.on_rtt(now.as_nanos(), &convert::round_trip(rtt)))
            }
            Event::Report(report) => {
                self.handle(now, Some(signals), |it| it.on_report(now.as_nanos(), report.fraction_lost.get()))
            }
            Event::Message(message) => self.handle_message(now, message, signals),
            Event::Liveness => self.handle(now, None, |it| it.on_liveness(now.as_nanos())),
            Event::Stream(stream) => {
                self.handle(now, None, |it| it.on_stream(now.as_nanos(), &convert::stream(stream)))
            }
            Event::StreamRemoved(stream) => self.handle(now, None, |it| it.on_stream_removed(now.as_nanos(), stream.0)),
            Event::Frame(frame) => self.handle(now, None, |it| it.on_frame(now.as_nanos(), &convert::frame(frame))),
            Event::ApplicationLimit(limited) => {
                self.handle(now, None, |it| it.on_application_limit(now.as_nanos(), limited))
            }
            Event::Bounds(bounds) => self.handle_bounds(now, bounds, signals),
            Event::RouteChange(setup) => self.handle_route_change(now, setup, signals),
            Event::Availability(available) => {
                self.handle(now, None, |it| it.on_availability(now.as_nanos(), available))
            }
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.library.table.on_packet_sent.is_some()
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.state.borrow().failure.is_some() { Some(Time::ZERO) } else { self.timer.due() }
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn poll_probe(&mut self, _: Time) -> Option<ProbeCluster> {
        self.probes.pop_front()
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let mut state = self.state.borrow_mut();
        match state.instance.as_mut()?.stream_rate(stream.0) {
            Ok(rate) => rate.map(Rate::from_bps),
            Err(problem) => {
                state.fail(&problem);
                None
            }
        }
    }

    fn poll_failure(&mut self) -> Option<Failure> {
        self.state.get_mut().failure.take()
    }
}

impl LibrarySendHalf {
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let mut packets = std::mem::take(&mut self.packets);
        packets.clear();
        packets.extend(feedback.packets.iter().map(convert::report));
        let message = PacelineFeedback {
            packets: packets.as_ptr(),
            packet_count: packets.len(),
            outstanding_bytes: feedback.outstanding.as_bytes(),
            after_highest_bytes: feedback.after_highest.as_bytes(),
            rtt: feedback.rtt.as_ref().map_or_else(PacelineRoundTrip::default, convert::round_trip),
            has_rtt: feedback.rtt.is_some().into(),
        };
        self.handle(now, Some(signals), |it| it.on_feedback(now.as_nanos(), &message));
        self.packets = packets;
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        if let Some(message) = convert::message(message) {
            self.handle(now, Some(signals), |it| it.on_message(now.as_nanos(), &message));
        }
    }

    fn handle_bounds(&mut self, now: Time, bounds: &Bounds, signals: &mut Signals) {
        let (min, max) = (bounds.min.as_bps(), bounds.max.as_bps());
        self.handle(now, Some(signals), |it| it.on_bounds(now.as_nanos(), min, max));
    }

    fn handle_route_change(&mut self, now: Time, setup: &Setup, signals: &mut Signals) {
        self.setup = *setup;
        self.handle(now, Some(signals), |it| it.on_route(now.as_nanos(), &convert::limits(setup)));
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let expired = self.timer.expire();
        self.handle(now, Some(signals), |it| it.on_timeout(now.as_nanos()));
        if let Err(problem) = self.timer.check_after(now, expired) {
            self.timer.stop();
            self.state.get_mut().fail(&format!("`decide` wrote invalid data: {problem}"));
        }
    }
}
