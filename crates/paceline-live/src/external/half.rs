// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half of an external controller.

use crate::external::failure::{self, Cause};
use crate::external::timer::Timer;
use paceline::{Decision, Event, Failure, ProbeCluster, SendHalf, Setup, Signals};
use paceline_units::{Rate, StreamId, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Debug;

/// What makes the decisions of a half: a process, or the state of a library.
pub trait Backend: Debug + Send + Sized + 'static {
    /// Starts it if it has not started. Returns its first decision if it starts now.
    fn start(&mut self) -> Result<Option<Decided>, Cause>;
    /// Handles an event. Returns its decision if it makes one.
    fn handle(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) -> Result<Option<Decided>, Cause>;
    /// Returns whether it decides after sent packets.
    fn decides_on_sent(&self) -> bool;
    /// Returns the rate of a stream, if it divides the target itself.
    fn stream_rate(&mut self, stream: StreamId) -> Result<Option<Rate>, Cause>;
    /// Copies it.
    fn copy(&self) -> Result<Self, Cause>;
    /// Ends it, and returns the last lines of its messages.
    fn end(self) -> Vec<String>;
    /// Returns the cause of a failure by an invalid decision.
    fn invalid(problem: String) -> Cause;
}

/// What a backend decided.
pub struct Decided {
    pub decision: Decision,
    /// The time of the next timeout.
    pub timeout: Option<Time>,
    pub probes: Vec<ProbeCluster>,
}

/// A send half whose decisions a backend makes.
#[derive(Debug)]
pub struct ExternalHalf<B> {
    /// A half starts when its decision is first needed, and its decision and stream rates take it by shared reference.
    state: RefCell<State<B>>,
    decides_on_sent: bool,
}

#[derive(Debug)]
struct State<B> {
    /// `None` if the half failed.
    backend: Option<B>,
    /// Why it failed, until that is taken.
    failure: Option<Failure>,
    decision: Decision,
    timer: Timer,
    probes: VecDeque<ProbeCluster>,
}

impl<B: Backend> State<B> {
    /// Sets the backend, or fails.
    fn with(mut self, backend: Result<Option<B>, Cause>) -> Self {
        match backend {
            Ok(backend) => self.backend = backend,
            Err(cause) => self.fail(&cause),
        }
        self
    }

    /// Calls the backend, and applies its decision.
    fn call(&mut self, now: Time, call: impl FnOnce(&mut B) -> Result<Option<Decided>, Cause>) {
        match self.backend.as_mut().map(call) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(Decided { decision, timeout, probes }))) => {
                self.decision = decision;
                self.timer.set(now, timeout);
                self.probes.extend(probes);
            }
            Some(Err(cause)) => self.fail(&cause),
        }
    }

    fn start(&mut self) {
        self.call(Time::ZERO, B::start);
    }

    fn fail(&mut self, cause: &Cause) {
        self.timer.stop();
        let messages = self.backend.take().map_or(Vec::new(), B::end);
        self.failure.get_or_insert_with(|| failure::failure(cause, messages));
    }
}

impl<B: Backend> ExternalHalf<B> {
    /// Creates a half that has not started its backend.
    pub fn new(backend: Result<B, Cause>, setup: &Setup) -> Self {
        let decides_on_sent = backend.as_ref().is_ok_and(B::decides_on_sent);
        let (failure, timer, probes) = Default::default();
        let state = State { backend: None, failure, decision: Decision::new(setup.start), timer, probes };
        Self { state: state.with(backend.map(Some)).into(), decides_on_sent }
    }

    /// Starts the backend.
    pub fn started(mut self) -> Self {
        self.state.get_mut().start();
        self
    }
}

/// A backend that cannot be copied ends the run of a copy.
impl<B: Backend> Clone for ExternalHalf<B> {
    fn clone(&self) -> Self {
        let State { backend, failure, decision, timer, probes } = &*self.state.borrow();
        let (failure, decision, timer, probes) = (failure.clone(), *decision, *timer, probes.clone());
        let state = State { backend: None, failure, decision, timer, probes };
        let backend = backend.as_ref().map(B::copy).transpose();
        Self { state: state.with(backend).into(), decides_on_sent: self.decides_on_sent }
    }
}

/// Returns whether signals are kept after an event.
fn has_signals(event: &Event<'_>) -> bool {
    use Event::{Bounds, Feedback, Message, Report, RoundTrip, RouteChange, Timeout};
    matches!(event, Feedback(_) | RoundTrip(_) | Report(_) | Message(_) | Bounds(_) | RouteChange(_) | Timeout)
}

impl<B: Backend> SendHalf for ExternalHalf<B> {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        let state = self.state.get_mut();
        state.start();
        let expired = matches!(event, Event::Timeout).then(|| state.timer.expire());
        let mut none = Signals::disabled();
        let signals = if has_signals(event) { signals } else { &mut none };
        state.call(now, |backend| backend.handle(now, event, signals));
        if let Some(expired) = expired
            && let Err(problem) = state.timer.check_after(now, expired)
        {
            state.fail(&B::invalid(problem));
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.decides_on_sent
    }

    fn poll_timeout(&self) -> Option<Time> {
        let state = self.state.borrow();
        if state.failure.is_some() { Some(Time::ZERO) } else { state.timer.due() }
    }

    fn decision(&self) -> Decision {
        let mut state = self.state.borrow_mut();
        state.start();
        state.decision
    }

    fn poll_probe(&mut self, _: Time) -> Option<ProbeCluster> {
        self.state.get_mut().probes.pop_front()
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let state = &mut *self.state.borrow_mut();
        let rate = state.backend.as_mut()?.stream_rate(stream);
        rate.unwrap_or_else(|cause| {
            state.fail(&cause);
            None
        })
    }

    fn poll_failure(&mut self) -> Option<Failure> {
        self.state.get_mut().failure.take()
    }
}
