// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outgoing event queue that every endpoint shares.

use paceline::Signals;
use std::collections::VecDeque;

/// Returns the next event in order. When no event is queued, the signals emitted since the last call follow, each
/// turned into an event by `signal_event`.
#[inline]
pub(crate) fn poll_event<E>(
    events: &mut VecDeque<E>,
    signals: &mut Signals,
    signal_event: impl Fn(u8, f64) -> E,
) -> Option<E> {
    // Most calls find nothing.
    if events.is_empty() && signals.is_empty() { None } else { next_event(events, signals, signal_event) }
}

/// Moves the signals to the events if no event is queued, and returns the next event.
fn next_event<E>(events: &mut VecDeque<E>, signals: &mut Signals, signal_event: impl Fn(u8, f64) -> E) -> Option<E> {
    if events.is_empty() {
        events.extend(signals.drain().map(|(index, value)| signal_event(index, value)));
    }
    events.pop_front()
}
