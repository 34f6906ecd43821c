// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the events of several threads in order of time.

use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_units::{Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// The time for which an event waits for earlier events of other threads. A thread that is later disturbs the run in
/// any case.
const REORDER_WINDOW: TimeDelta = TimeDelta::from_secs(1);

/// An observer that sends events to another thread.
pub struct EventSender(pub Sender<EventRecord>);

impl EventObserver for EventSender {
    fn on_event(&mut self, event: &EventRecord) {
        // After a failed run the receiver is gone.
        let _ = self.0.send(*event);
    }
}

/// Passes events to `observer` in order of time until every sender is dropped. Discards events after `end`.
pub fn merge(events: &Receiver<EventRecord>, observer: &mut dyn EventObserver, now: impl Fn() -> Time, end: Time) {
    // By time and, for equal times, by order of reception.
    let mut pending: BTreeMap<(Time, u64), EventRecord> = BTreeMap::new();
    let mut number = 0;
    loop {
        let received = events.recv_timeout(Duration::from_millis(100));
        let is_over = received == Err(RecvTimeoutError::Disconnected);
        for event in received.into_iter().chain(events.try_iter()).filter(|event| event.at() <= end) {
            observer.on_unordered_event(&event);
            pending.insert((event.at(), number), event);
            number += 1;
        }
        let until = if is_over { end } else { now() - REORDER_WINDOW };
        while let Some(first) = pending.first_entry().filter(|first| first.key().0 <= until) {
            observer.on_event(&first.remove());
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, FlowId};
    use std::sync::mpsc;

    struct Times(Vec<Time>);
    impl EventObserver for Times {
        fn on_event(&mut self, event: &EventRecord) {
            self.0.push(event.at());
        }
    }

    #[test]
    fn merges_threads_in_order_of_time_up_to_the_end() {
        let (sender, events) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let sender = sender.clone();
                scope.spawn(move || {
                    for n in 0..100 {
                        let at = Time::from_millis(3 * n + thread);
                        sender.send(EventRecord::Read { at, flow: FlowId(0), size: DataSize::ZERO }).unwrap();
                    }
                });
            }
            drop(sender);
            let mut times = Times(Vec::new());
            merge(&events, &mut times, || Time::ZERO, Time::from_millis(250));
            let expected: Vec<Time> = (0..=250).map(Time::from_millis).collect();
            assert_eq!(times.0, expected);
        });
    }
}
