// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a sender: completed transfers, and signals, each of which is emitted when its value changes.
//!
//! Owns the queue of events, and the values of the signals as last emitted.

use super::TcpSenderEvent;
use crate::flow::event_queue;
use paceline::{Signals, signal_names};
use std::collections::VecDeque;

signal_names! {
    pub(super) enum TcpSignal {
        Window = series("cwnd", "B"),
        Threshold = series("ssthresh", "B"),
        SmoothedRtt = series("srtt", "ms"),
        State = state("state", &["open", "disorder", "recovery", "loss", "cwr"]),
        Target = series("W_max", "B"),
    }
}

const SIGNALS: [TcpSignal; 5] =
    [TcpSignal::Window, TcpSignal::Threshold, TcpSignal::SmoothedRtt, TcpSignal::State, TcpSignal::Target];

/// The value of each of [`SIGNALS`]; `None` if it has none.
pub(super) type SignalValues = [Option<f64>; SIGNALS.len()];

#[derive(Debug)]
pub(super) struct Events {
    queue: VecDeque<TcpSenderEvent>,
    signals: Signals,
    signals_enabled: bool,
    /// The last value of each signal.
    values: SignalValues,
}

impl Events {
    pub fn new(signals: Signals) -> Self {
        let signals_enabled = signals.is_enabled();
        Self { queue: VecDeque::new(), signals, signals_enabled, values: SignalValues::default() }
    }

    pub fn push(&mut self, event: TcpSenderEvent) {
        self.queue.push_back(event);
    }

    /// Returns the next event, in order.
    #[inline]
    pub fn poll(&mut self) -> Option<TcpSenderEvent> {
        event_queue::poll_event(&mut self.queue, &mut self.signals, TcpSenderEvent::Signal)
    }

    /// Emits the signals that have another value than before. `values` is called only if signals are enabled.
    #[inline]
    pub fn emit_signals(&mut self, values: impl FnOnce() -> SignalValues) {
        if !self.signals_enabled {
            return;
        }
        let values = values();
        for ((signal, new), old) in SIGNALS.into_iter().zip(values).zip(self.values) {
            if let Some(value) = new.filter(|_| new != old) {
                self.signals.emit(signal, value);
            }
        }
        self.values = values;
    }
}
