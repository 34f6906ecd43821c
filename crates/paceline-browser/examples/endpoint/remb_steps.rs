// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receive half that sends REMB with configured rates, independent of the path.

use paceline::{Arrival, Config, Controller, Entry, Message, Parameters, ReceiveHalf, Setup, Signals};
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Returns the controller `remb`. Each rate applies from its time since the first packet.
pub fn remb(steps: Vec<(TimeDelta, Rate)>) -> Entry {
    Entry::new("remb", "sends REMB with configured rates", "test fixture", Steps(steps))
}

#[derive(Clone)]
struct Steps(Vec<(TimeDelta, Rate)>);

impl Parameters for Steps {}

impl Config for Steps {
    const CONTROLS: bool = false;
    fn halves(&self, _: &Setup) -> Controller {
        let half = RembSchedule { steps: self.0.clone(), begin: None, due: RemoteTime::MAX };
        Controller::new(None, Some(Box::new(half)))
    }
}

#[derive(Clone, Debug)]
struct RembSchedule {
    steps: Vec<(TimeDelta, Rate)>,
    begin: Option<RemoteTime>,
    due: RemoteTime,
}

impl ReceiveHalf for RembSchedule {
    fn handle_arrival(&mut self, now: RemoteTime, _: &Arrival, _: &mut Signals) {
        if self.begin.is_none() {
            (self.begin, self.due) = (Some(now), now);
        }
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        Some(self.due).filter(|due| *due < RemoteTime::MAX)
    }
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message> {
        let begin = self.begin.filter(|_| now >= self.due)?;
        self.due = now + TimeDelta::from_millis(500);
        self.steps.iter().rev().find(|(at, _)| now - begin >= *at).map(|(_, rate)| Message::Remb(*rate))
    }
}
