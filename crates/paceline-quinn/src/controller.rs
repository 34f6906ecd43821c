// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller of one path, as quinn calls it. [`State`] has the work; here are quinn's types.

use crate::Encoder;
use crate::state::State;
use paceline::{Controller, Setup};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerMetrics};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A controller of Paceline as quinn's congestion controller.
#[derive(Debug)]
pub struct PacelineController {
    /// quinn requires [`Sync`], which a send half is not. Only copies lock.
    state: Mutex<State>,
    /// The window of the state.
    window: u64,
    /// Whether quinn has read the window since the last packet. It does so before each packet but those with ACKs alone and loss probes.
    is_window_read: AtomicBool,
    initial_window: u64,
    encoder: Encoder,
}

impl PacelineController {
    pub(crate) fn new(controller: Controller, setup: &Setup, encoder: Encoder, now: Instant, mtu: u16) -> Self {
        let state = State::new(controller, setup, encoder.clone(), now, mtu);
        let window = state.window();
        Self {
            state: Mutex::new(state),
            window,
            is_window_read: AtomicBool::new(false),
            initial_window: window,
            encoder,
        }
    }

    /// Returns the handle with the rates for the encoder.
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Returns the number of packets that arrived, and of those that were lost, as the controller knows them. Packets of at most
    /// 64 bytes do not count.
    pub fn packets_reported(&self) -> (u64, u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).packets_reported()
    }

    #[inline]
    fn update(&mut self, change: impl FnOnce(&mut State)) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        change(state);
        self.window = state.window();
    }
}

impl congestion::Controller for PacelineController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let has_data = std::mem::take(self.is_window_read.get_mut());
        self.update(|state| state.handle_sent(now, bytes, last_packet_number, has_data));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.update(|state| state.handle_ack(now, sent, bytes, !app_limited, rtt.get()));
    }

    fn on_end_acks(&mut self, _now: Instant, in_flight: u64, _app_limited: bool, _largest_acked: Option<u64>) {
        self.update(|state| state.handle_ack_end(in_flight));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        self.update(|state| match lost_bytes {
            0 => state.handle_ecn_mark(),
            _ => state.handle_loss(now, sent, lost_bytes, is_persistent_congestion),
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.update(|state| state.handle_mtu(new_mtu));
    }

    fn window(&self) -> u64 {
        self.is_window_read.store(true, Ordering::Relaxed);
        self.window
    }

    /// Returns the window and, as the pacing rate, the target. quinn paces by the window, and only logs this; programs that read
    /// it as the bandwidth get the right one.
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.pacing_rate = Some(self.encoder.target().rate.as_bps());
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (window, initial_window, encoder) = (self.window, self.initial_window, self.encoder.clone());
        Box::new(Self {
            state: Mutex::new(state),
            window,
            is_window_read: AtomicBool::new(false),
            initial_window,
            encoder,
        })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
