// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a controller, which is its factory.

use crate::{Encoder, PacelineController, Target};
use paceline::{Controller, Entry, Registry, Setup};
use paceline_units::TimeDelta;
use quinn_proto::congestion;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// quinn's round-trip time before the first sample (RFC 9002, section 6.2.2).
pub(crate) const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(333);

/// The parameter that selects the response to marks of a queue for ECT(1). quinn sends ECT(0).
const L4S: &str = "l4s";

/// An error of configuring a controller.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The registry cannot build the controller.
    #[error(transparent)]
    Controller(#[from] paceline::ConfigError),
    /// The controller measures at the receiver, and QUIC carries no messages for it.
    #[error(
        "`{0}` needs a receive half; in QUIC use one that needs reports on packets, such as drc, scream-v2 or googcc"
    )]
    NeedsReceiver(String),
}

/// The configuration of a controller for quinn: a [`ControllerFactory`](congestion::ControllerFactory).
///
/// Set it at the end that sends media. The other end keeps quinn's default.
pub struct ControllerConfig {
    /// A controller in its first state, which is copied for each path.
    controller: Mutex<Controller>,
    setup: Setup,
    /// The handle of the only connection. `None`: each path of each connection has its own.
    encoder: Option<Encoder>,
}

impl ControllerConfig {
    /// Returns the configuration of a registered controller for any number of connections, with its default parameters. ECN is
    /// that of RFC 3168, because quinn sends ECT(0). [`Encoder::of`] returns the handle of a connection.
    ///
    /// # Errors
    /// There is no controller of this name, it needs a receive half, or `setup` contradicts itself.
    pub fn new(name: &str, setup: &Setup) -> Result<Self, ConfigError> {
        let registry = Registry::standard();
        let Some(entry) = registry.get(name) else {
            return Err(registry.build(name, setup).map(|_| ()).unwrap_err().into());
        };
        Self::from_entry(entry, setup, &[])
    }

    /// Returns the configuration of a registered controller with other parameters, as [`Entry::build`] takes them.
    ///
    /// # Errors
    /// A parameter is unknown or out of range, the controller needs a receive half, or `setup` contradicts itself.
    pub fn from_entry(entry: &Entry, setup: &Setup, changes: &[(String, f64)]) -> Result<Self, ConfigError> {
        let mut all = Vec::new();
        if entry.fields().iter().any(|field| field.name == L4S) {
            all.push((L4S.to_owned(), 0.0));
        }
        all.extend_from_slice(changes);
        let controller = entry.build(setup, &all)?;
        if controller.receive.is_some() || controller.send.is_none() {
            return Err(ConfigError::NeedsReceiver(entry.name().to_owned()));
        }
        Ok(Self { controller: Mutex::new(controller), setup: *setup, encoder: None })
    }

    /// Makes this the configuration of one connection, and returns its handle. It also holds after the connection has moved to
    /// another path. Connections that share this configuration would overwrite each other's rates.
    pub fn for_connection(mut self, now: Instant) -> (Arc<Self>, Encoder) {
        let encoder = self.new_encoder(now);
        self.encoder = Some(encoder.clone());
        (Arc::new(self), encoder)
    }

    fn new_encoder(&self, now: Instant) -> Encoder {
        let rate = self.setup.start.min(self.setup.max);
        Encoder::new(Target {
            rate,
            stable_rate: rate,
            pacing: rate,
            application_limited: false,
            rtt: INITIAL_RTT,
            updated: now,
        })
    }

    fn copy(&self) -> Controller {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for ControllerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerConfig").field("setup", &self.setup).finish_non_exhaustive()
    }
}

impl congestion::ControllerFactory for ControllerConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let encoder = self.encoder.clone().unwrap_or_else(|| self.new_encoder(now));
        Box::new(PacelineController::new(self.copy(), &self.setup, encoder, now, current_mtu))
    }
}
