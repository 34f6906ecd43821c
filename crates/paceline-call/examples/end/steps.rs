//! A receive half that asks for given rates by REMB, whatever the path does.

use paceline::{Arrival, Config, Controller, Entry, FeedbackKind, Message, ReceiveHalf, Setup, SignalSpec, Signals};
use paceline_units::{Ecn, Rate, RemoteTime, TimeDelta};

/// The controller `remb`: rates to ask for, each from a time since the first packet on.
pub fn remb(steps: Vec<(TimeDelta, Rate)>) -> Entry {
    Entry::new("remb", "asks for what it is told to ask for", "nobody", Steps(steps))
}

#[derive(Clone)]
struct Steps(Vec<(TimeDelta, Rate)>);

impl Config for Steps {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (&[], &[]);
    const CONTROLS: bool = false;
    fn build(&self, _: &Setup) -> Controller {
        let half = Asking { steps: self.0.clone(), begin: None, due: RemoteTime::MAX };
        Controller { send: None, receive: Some(Box::new(half)), feedback: FeedbackKind::None, ecn: Ecn::NotEct }
    }
}

struct Asking {
    steps: Vec<(TimeDelta, Rate)>,
    begin: Option<RemoteTime>,
    due: RemoteTime,
}

impl ReceiveHalf for Asking {
    fn handle_arrival(&mut self, now: RemoteTime, _: &Arrival, _: &mut Signals) {
        if self.begin.is_none() {
            (self.begin, self.due) = (Some(now), now);
        }
    }
    fn poll_timeout(&self) -> RemoteTime {
        self.due
    }
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message> {
        let begin = self.begin.filter(|_| now >= self.due)?;
        self.due = now + TimeDelta::from_millis(500);
        self.steps.iter().rev().find(|(at, _)| now - begin >= *at).map(|(_, rate)| Message::Remb(*rate))
    }
}
