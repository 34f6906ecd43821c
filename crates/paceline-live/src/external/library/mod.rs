// SPDX-License-Identifier: MIT OR Apache-2.0
//! A send half in a shared library: `lib:PATH`. Its functions are called in this process, with the events that a program gets
//! by `exec:`.

mod convert;
mod table;

use crate::external::declared::Declared;
use crate::external::failure::Cause;
use crate::external::half::{Backend, Decided};
use crate::external::protocol::Hello;
use paceline::{Event, ProbeCluster, Setup, Signals};
use paceline_abi::{PACELINE_NEVER, PacelineControllerV1, PacelineFeedback, PacelinePacketReport, PacelineRoundTrip};
use paceline_units::{Rate, StreamId, Time};
use std::sync::Arc;
use table::{Handled, Instance};

/// The most probe clusters of one event.
const PROBES_MAX: usize = 64;

#[derive(Debug)]
pub struct LibraryController {
    /// What it declares, in the form of a program's first line.
    pub hello: Hello,
    /// The same in the form of the registry.
    pub declared: Declared,
    table: &'static PacelineControllerV1,
}

impl LibraryController {
    /// Loads a library.
    pub fn load(path: &str) -> Result<Self, Cause> {
        let table = table::load(path)?;
        let hello = table::hello(table)?;
        let declared = Declared::new(&hello).map_err(|problem| Cause::Library(format!("is invalid: {problem}")))?;
        Ok(Self { hello, declared, table })
    }
}

/// The state of a library that makes the decisions of a half.
#[derive(Debug)]
pub struct LibraryHalf {
    library: Arc<LibraryController>,
    setup: Setup,
    instance: Instance,
    has_started: bool,
    signal_values: Vec<f64>,
}

impl LibraryHalf {
    /// Creates a state of its own. `parameters` has the order of the declaration.
    pub fn new(library: Arc<LibraryController>, setup: Setup, parameters: &[f64]) -> Result<Self, Cause> {
        let instance = Instance::create(library.table, &convert::limits(&setup), parameters);
        let instance = instance.map_err(Cause::Function)?;
        let signal_values = vec![f64::NAN; library.declared.send_signals.len()];
        Ok(Self { library, setup, instance, has_started: false, signal_values })
    }

    /// Reads the decision.
    fn decide(&mut self, now: Time, signals: &mut Signals) -> Result<Option<Decided>, String> {
        let decided = self.instance.decide(convert::blank_decision(&self.setup))?;
        let decision =
            convert::decision(&decided).map_err(|problem| format!("`decide` wrote invalid data: {problem}"))?;
        let timeout = (decided.timeout_ns != PACELINE_NEVER).then(|| Time::from_nanos(decided.timeout_ns));
        let mut probes = Vec::new();
        while let Some(probe) = self.instance.poll_probe(now.as_nanos())? {
            if probes.len() == PROBES_MAX || probe.rate_bps == 0 {
                return Err(format!("`poll_probe` wrote more than {PROBES_MAX} probes or one of rate 0"));
            }
            let (rate, duration) = (Rate::from_bps(probe.rate_bps), convert::span(probe.duration_ns));
            probes.push(ProbeCluster::new(probe.id, rate, duration, probe.packets));
        }
        if signals.is_enabled() {
            self.instance.read_signals(&mut self.signal_values)?;
            let values = self.signal_values.iter().enumerate().filter(|(_, value)| !value.is_nan());
            values.for_each(|(index, value)| signals.emit_index(index as u8, *value));
        }
        Ok(Some(Decided { decision, timeout, probes }))
    }
}

impl Backend for LibraryHalf {
    fn start(&mut self) -> Result<Option<Decided>, Cause> {
        if std::mem::replace(&mut self.has_started, true) {
            return Ok(None);
        }
        self.decide(Time::ZERO, &mut Signals::disabled()).map_err(Cause::Function)
    }

    /// Calls a handler and, if the library has it, reads the decision.
    fn handle(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) -> Result<Option<Decided>, Cause> {
        if let Event::RouteChange(setup) = event {
            self.setup = **setup;
        }
        match handle(&mut self.instance, now.as_nanos(), event) {
            Ok(false) => Ok(None),
            Ok(true) => self.decide(now, signals).map_err(Cause::Function),
            Err(problem) => Err(Cause::Function(problem)),
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.library.table.on_packet_sent.is_some()
    }

    fn stream_rate(&mut self, stream: StreamId) -> Result<Option<Rate>, Cause> {
        let rate = self.instance.stream_rate(stream.0).map_err(Cause::Function)?;
        Ok(rate.map(Rate::from_bps))
    }

    fn copy(&self) -> Result<Self, Cause> {
        let none = || Err("its state cannot be copied: the function `copy` is null".to_owned());
        let instance = self.instance.copy().unwrap_or_else(none).map_err(Cause::Function)?;
        let (library, signal_values) = (Arc::clone(&self.library), self.signal_values.clone());
        Ok(Self { library, setup: self.setup, instance, has_started: self.has_started, signal_values })
    }

    fn end(self) -> Vec<String> {
        Vec::new()
    }

    fn invalid(problem: String) -> Cause {
        Cause::Function(format!("`decide` wrote invalid data: {problem}"))
    }
}

/// Calls the handler of an event.
fn handle(instance: &mut Instance, now_ns: i64, event: &Event<'_>) -> Handled {
    match *event {
        Event::Sent(packet) => instance.on_packet_sent(now_ns, &convert::sent(packet)),
        Event::Feedback(feedback) => {
            let packets: Vec<PacelinePacketReport> = feedback.packets.iter().map(convert::report).collect();
            let message = PacelineFeedback {
                packets: packets.as_ptr(),
                packet_count: packets.len(),
                outstanding_bytes: feedback.outstanding.as_bytes(),
                after_highest_bytes: feedback.after_highest.as_bytes(),
                rtt: feedback.rtt.as_ref().map_or_else(PacelineRoundTrip::default, convert::round_trip),
                has_rtt: feedback.rtt.is_some().into(),
            };
            instance.on_feedback(now_ns, &message)
        }
        Event::RoundTrip(rtt) => instance.on_rtt(now_ns, &convert::round_trip(rtt)),
        Event::Report(report) => instance.on_report(now_ns, report.fraction_lost.get()),
        Event::Message(message) => {
            convert::message(message).map_or(Ok(false), |message| instance.on_message(now_ns, &message))
        }
        Event::Liveness => instance.on_liveness(now_ns),
        Event::Stream(stream) => instance.on_stream(now_ns, &convert::stream(stream)),
        Event::StreamRemoved(stream) => instance.on_stream_removed(now_ns, stream.0),
        Event::Frame(frame) => instance.on_frame(now_ns, &convert::frame(frame)),
        Event::ApplicationLimit(limited) => instance.on_application_limit(now_ns, limited),
        Event::Bounds(bounds) => instance.on_bounds(now_ns, bounds.min.as_bps(), bounds.max.as_bps()),
        Event::RouteChange(setup) => instance.on_route(now_ns, &convert::limits(setup)),
        Event::Availability(available) => instance.on_availability(now_ns, available),
        Event::Timeout => instance.on_timeout(now_ns),
        _ => Ok(false),
    }
}
