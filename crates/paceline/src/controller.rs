//! The interface between a controller and the flow that it controls.
//!
//! The send half decides the rate. The receive half, if there is one, measures packet arrivals and writes feedback
//! messages. Neither sees bytes: the flow parses RTCP, keeps the history of sent packets and runs the pacer. A send half
//! handles the [events](Event) that it uses and ignores the others.

use crate::{Arrival, Bounds, Decision, Event, Failure, Message, ProbeCluster, Setup, Signals};
use core::fmt::Debug;
use paceline_units::{Rate, RemoteTime, StreamId, Time, TimeDelta};

/// A controller as a flow holds it. A clone has the same state, and the two do not affect each other.
#[derive(Clone, Debug)]
pub struct Controller {
    /// The half at the sender. Without one the flow sends at the rate of its sources.
    pub send: Option<Box<dyn SendHalf>>,
    /// The half at the receiver.
    pub receive: Option<Box<dyn ReceiveHalf>>,
    /// The per-packet feedback that the send half needs in addition to the messages of the receive half; `None` if it
    /// needs none.
    pub feedback: Option<FeedbackRequirement>,
}

impl Controller {
    /// Returns a controller with a send half alone, without per-packet feedback.
    pub fn from_sender(send: impl SendHalf + 'static) -> Self {
        Self { send: Some(Box::new(send)), receive: None, feedback: None }
    }
    /// Returns a controller whose receive half sends all the feedback that the send half needs.
    pub fn from_halves(send: impl SendHalf + 'static, receive: impl ReceiveHalf + 'static) -> Self {
        Self { receive: Some(Box::new(receive)), ..Self::from_sender(send) }
    }
    /// Puts the send half under the [`Guard`](crate::Guard), which lowers the rate when feedback stops, but not below `min`.
    pub fn guarded(self, min: Rate) -> Self {
        let guarded = |half| -> Box<dyn SendHalf> { Box::new(crate::Guard::new(half, min)) };
        Self { send: self.send.map(guarded), ..self }
    }
}

/// What a send half needs to know about each packet: whether and when it arrived, and perhaps its ECN field. The flow
/// chooses the wire format among those that both ends support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRequirement {
    /// Whether the half uses the ECN field of arriving packets. Not every format has it.
    pub ecn: bool,
    /// The time between two reports.
    pub interval: TimeDelta,
    /// The longest time between two reports. It applies when reports would take more than 5 % of the rate that they
    /// cover.
    pub longest: TimeDelta,
}

/// Copies the state of a send half, so that a call can be continued in several ways or restored. Every send half that is
/// [`Clone`] has it.
pub trait SendSnapshot {
    /// Returns a half in the same state. The same calls then cause the same decisions in both.
    fn snapshot(&self) -> Box<dyn SendHalf>;
}

impl<T: SendHalf + Clone + 'static> SendSnapshot for T {
    fn snapshot(&self) -> Box<dyn SendHalf> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn SendHalf> {
    fn clone(&self) -> Self {
        (**self).snapshot()
    }
}

/// The half at the sender. Times never decrease from call to call. `Debug` shows the state; derive it and [`Clone`].
pub trait SendHalf: Send + Debug + SendSnapshot {
    /// Handles an event. A half ignores the events that it does not use.
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals);
    /// Returns the current decision. The flow reads it after every event but [`Frame`](Event::Frame), and after
    /// [`Sent`](Event::Sent) only if the half [decides then](Self::decides_on_sent).
    fn decision(&self) -> Decision;
    /// Returns whether [`Event::Sent`] may change the decision; the same for the life of the half. If not, the flow does
    /// not read the decision after each packet, which saves time.
    fn decides_on_sent(&self) -> bool {
        true
    }
    /// Returns the time at which to pass [`Event::Timeout`], if at all.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
    /// Returns the next probe cluster to send. The flow calls this until it returns `None`, after feedback, reports,
    /// messages and timeouts, and sends the clusters one after the other. A flow without video sends none.
    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        let _ = now;
        None
    }
    /// Returns the rate of one stream, if the controller divides the target itself. The flow reads it with each frame
    /// and each new decision. If it is `None`, the flow divides the target: first the minima, then the rest by priority
    /// up to the maxima.
    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        let _ = stream;
        None
    }
    /// Returns the rate that the half last calculated, if it can be replaced by a share of the rate of several flows
    /// (RFC 8699, [`Event::CoupledRate`]); see [`FlowStateExchange`](crate::FlowStateExchange). It is `None` for a half
    /// whose target is not its own rate: one with a window, or one whose rate is calculated at the receiver.
    fn calculated_rate(&self) -> Option<Rate> {
        None
    }
    /// Returns why the half failed, once; `None` if it has not. Afterwards the half must not be used. The flow calls this when it
    /// reads the [`decision`](Self::decision), and ends the run. Only a half whose decisions other code makes can fail, such as
    /// another process.
    fn poll_failure(&mut self) -> Option<Failure> {
        None
    }
}

/// Copies the state of a receive half, as [`SendSnapshot`] that of a send half.
pub trait ReceiveSnapshot {
    /// Returns a half in the same state. The same calls then cause the same messages from both.
    fn snapshot(&self) -> Box<dyn ReceiveHalf>;
}

impl<T: ReceiveHalf + Clone + 'static> ReceiveSnapshot for T {
    fn snapshot(&self) -> Box<dyn ReceiveHalf> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn ReceiveHalf> {
    fn clone(&self) -> Self {
        (**self).snapshot()
    }
}

/// The half at the receiver, on the receiver's clock. Times never decrease from call to call. `Debug` shows the state;
/// derive it and [`Clone`].
pub trait ReceiveHalf: Send + Debug + ReceiveSnapshot {
    /// Handles an arriving packet.
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals);
    /// Handles new limits of the sender's target.
    fn handle_bounds(&mut self, now: RemoteTime, bounds: &Bounds) {
        let _ = (now, bounds);
    }
    /// Handles a change of the network route. Afterwards the half behaves like one that was built with the same config
    /// and this setup.
    fn handle_route_change(&mut self, now: RemoteTime, setup: &Setup) {
        let _ = (now, setup);
    }
    /// Handles the time returned by [`poll_timeout`](Self::poll_timeout).
    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        let _ = (now, signals);
    }
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout), if at all.
    fn poll_timeout(&self) -> Option<RemoteTime> {
        None
    }
    /// Returns the next message to send. The flow calls this after every `handle_*` call until it returns `None`.
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message>;
    /// Returns why the half failed, as [`SendHalf::poll_failure`].
    fn poll_failure(&mut self) -> Option<Failure> {
        None
    }
}
