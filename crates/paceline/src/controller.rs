// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between a controller and the flow that it controls.
//!
//! The send half decides the rate. The receive half, if there is one, measures packet arrivals and writes feedback
//! messages. Neither sees bytes: the flow parses RTCP, keeps the history of sent packets and runs the pacer. A send half
//! handles the [events](Event) that it uses and ignores the others.

use crate::setters::setters;
use crate::{Arrival, Bounds, Decision, Event, Failure, Guard, Message, MessageKind, ProbeCluster, Setup, Signals};
use alloc::boxed::Box;
use core::fmt::Debug;
use paceline_units::{Rate, RemoteTime, StreamId, Time, TimeDelta};

/// A controller as a flow holds it. A clone has the same state, and the two do not affect each other.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Controller {
    /// The half at the sender, under its guard. Without one the flow sends at the rate of its sources.
    pub send: Option<Guard>,
    /// The half at the receiver.
    pub receive: Option<Box<dyn ReceiveHalf>>,
    /// The per-packet feedback that the send half needs in addition to the messages of the receive half; `None` if it
    /// needs none.
    pub feedback: Option<FeedbackRequirement>,
}

impl Controller {
    /// Returns a controller with these halves, without guard and per-packet feedback.
    pub fn new(send: Option<Box<dyn SendHalf>>, receive: Option<Box<dyn ReceiveHalf>>) -> Self {
        Self { send: send.map(Guard::off), receive, feedback: None }
    }
    /// Returns a controller with a send half alone, without guard and per-packet feedback.
    pub fn from_sender(send: impl SendHalf + 'static) -> Self {
        Self::new(Some(Box::new(send)), None)
    }
    /// Returns a controller whose send half needs reports on packets, at these intervals.
    pub(crate) fn from_reports(
        send: impl SendHalf + 'static,
        interval: TimeDelta,
        longest: TimeDelta,
        ecn: bool,
    ) -> Self {
        let feedback = FeedbackRequirement { ecn, interval, longest: longest.max(interval) };
        Self { feedback: Some(feedback), ..Self::from_sender(send) }
    }
    /// Returns a controller whose receive half sends all the feedback that the send half needs.
    pub fn from_halves(send: impl SendHalf + 'static, receive: impl ReceiveHalf + 'static) -> Self {
        Self { receive: Some(Box::new(receive)), ..Self::from_sender(send) }
    }
    setters! { with_feedback(feedback: Option<FeedbackRequirement>) }
    /// Puts the send half under the [`Guard`], which lowers the rate when feedback stops, but not below `min`.
    pub fn guarded(self, min: Rate) -> Self {
        Self { send: self.send.map(|guard| Guard::new(guard.into_half(), min)), ..self }
    }
}

/// What a controller needs from its flow, apart from the packets that are sent, timeouts and receiver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Reports on each packet.
    pub feedback: bool,
    /// The ECN field of each packet in these reports.
    pub ecn: bool,
    /// Messages of its receive half, which runs at the receiver. REMB may come from another stack.
    pub messages: Option<MessageKind>,
}

impl Controller {
    /// Returns what the controller needs from its flow. A controller that does not get it stays at its start rate.
    pub fn needs(&self) -> Needs {
        Needs {
            feedback: self.feedback.is_some(),
            ecn: self.feedback.is_some_and(|feedback| feedback.ecn),
            messages: self.receive.as_ref().map(|half| half.message_kind()),
        }
    }
}

impl Controller {
    /// Returns a sender and a receiver with one video stream, of id 0. `setup` is that of the controller; its maximum is a hard
    /// limit of the target. A program that is only one of the ends drops the other; both ends must build the same controller, and
    /// parameters of the receive half must agree.
    pub fn endpoints<T>(mut self, setup: &Setup) -> (crate::Sender<T>, crate::Receiver) {
        let config = crate::SenderConfig::new(setup);
        let mut sender = crate::Sender::new(&config, &mut self, Signals::disabled());
        sender.add_stream(&crate::StreamConfig::video(StreamId(0), Rate::ZERO, Rate::MAX));
        (sender, crate::Receiver::new(&mut self, Signals::disabled()))
    }
}

/// What a send half needs to know about each packet: whether and when it arrived, and perhaps its ECN field. The flow
/// chooses the wire format among those that both ends support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedbackRequirement {
    /// Whether the half uses the ECN field of arriving packets. Not every format has it.
    pub ecn: bool,
    /// The time between two reports.
    pub interval: TimeDelta,
    /// The longest time between two reports. It applies when reports would take more than 5 % of the rate that they
    /// cover.
    pub longest: TimeDelta,
}

impl FeedbackRequirement {
    /// Returns a requirement of reports at these intervals, without the ECN field.
    pub const fn new(interval: TimeDelta, longest: TimeDelta) -> Self {
        Self { ecn: false, interval, longest }
    }
    setters! { with_ecn(ecn: bool) }
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
    /// [`Sent`](Event::Sent) only if the half [has decided then](Self::decides_on_sent).
    fn decision(&self) -> Decision;
    /// Returns whether the last [`Event::Sent`] may have changed the decision. If it has not, the flow does not read the
    /// decision after the packet, which saves time. `false` before the first packet: no packet ever changes it.
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
    /// Returns why the half failed, once; `None` if it has not. The flow calls this before it reads the
    /// [`decision`](Self::decision). Until then a half that failed ignores events, and its [`poll_timeout`](Self::poll_timeout) returns a
    /// time that has passed; afterwards the flow does not use it. Only a half whose decisions other code makes can fail, such as
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
    /// Returns the kind of its messages.
    fn message_kind(&self) -> MessageKind {
        MessageKind::App
    }
    /// Returns why the half failed, as [`SendHalf::poll_failure`]. The flow calls this after timeouts and changes, not after packets:
    /// a half that failed has no message, and its [`poll_timeout`](Self::poll_timeout) returns a time that has passed.
    fn poll_failure(&mut self) -> Option<Failure> {
        None
    }
}
