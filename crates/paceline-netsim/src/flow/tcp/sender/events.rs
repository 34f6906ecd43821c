//! The events of a sender: completed transfers, and signals, each of which is emitted when its value changes.
//!
//! Owns the queue of events, and the values of the signals as last emitted.

use super::TcpSenderEvent;
use crate::flow::event_queue;
use crate::flow::tcp::congestion::{CongestionWindow, NO_THRESHOLD};
use paceline::{Signals, signal_names};
use paceline_units::{DataSize, TimeDelta};
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

/// Values of the signals.
#[derive(Debug)]
pub(super) struct SignalValues {
    pub window: CongestionWindow,
    pub srtt: Option<TimeDelta>,
    /// Index of the state in [`TcpSignal::State`].
    pub state: u8,
    pub target: Option<DataSize>,
}

impl SignalValues {
    /// Nothing was emitted yet.
    const NONE: Self = Self {
        window: CongestionWindow { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD },
        srtt: None,
        state: u8::MAX,
        target: None,
    };
}

#[derive(Debug)]
pub(super) struct Events {
    queue: VecDeque<TcpSenderEvent>,
    signals: Signals,
    signals_enabled: bool,
    /// Values of the signals as last emitted.
    emitted: SignalValues,
}

impl Events {
    pub fn new(signals: Signals) -> Self {
        let signals_enabled = signals.is_enabled();
        Self { queue: VecDeque::new(), signals, signals_enabled, emitted: SignalValues::NONE }
    }

    pub fn push(&mut self, event: TcpSenderEvent) {
        self.queue.push_back(event);
    }

    /// Returns the next event, in order.
    #[inline]
    pub fn poll(&mut self) -> Option<TcpSenderEvent> {
        event_queue::poll_event(&mut self.queue, &mut self.signals, TcpSenderEvent::Signal)
    }

    /// Emits the signals that changed. `values` is called only if signals are enabled.
    #[inline]
    pub fn emit_signals(&mut self, values: impl FnOnce() -> SignalValues) {
        if !self.signals_enabled {
            return;
        }
        let (new, old) = (values(), &self.emitted);
        let bytes = |size: DataSize| size.as_bytes() as f64;
        if new.window.cwnd != old.window.cwnd {
            self.signals.emit(TcpSignal::Window, bytes(new.window.cwnd));
        }
        if new.window.ssthresh != old.window.ssthresh && new.window.ssthresh != NO_THRESHOLD {
            self.signals.emit(TcpSignal::Threshold, bytes(new.window.ssthresh));
        }
        if let Some(srtt) = new.srtt
            && old.srtt != Some(srtt)
        {
            self.signals.emit(TcpSignal::SmoothedRtt, srtt.as_millis_f64());
        }
        if new.state != old.state {
            self.signals.emit(TcpSignal::State, new.state as f64);
        }
        if let Some(target) = new.target
            && old.target != Some(target)
        {
            self.signals.emit(TcpSignal::Target, bytes(target));
        }
        self.emitted = new;
    }
}
