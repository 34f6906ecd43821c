// SPDX-License-Identifier: MIT OR Apache-2.0
//! A registered controller: its name, description and configuration. The configuration is the factory of its halves.

use crate::setters::setters;
use crate::{Bounds, Controller, FieldInfo, Parameters, SignalSpec};
use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use paceline_units::{DataSize, Rate, round_to_u64};

/// Rate limits and packet size of a flow, given to a controller when it is built and when the route changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// The first target, but not above the maximum.
    pub start: Rate,
    /// The lowest target. Set it above zero: from a rate near zero a controller needs minutes to recover.
    pub min: Rate,
    /// The highest rate that the flow's sources can use, headers included. Padding and probing stop there. It limits the target
    /// of a [`Sender`](crate::Sender); the target of a half alone may exceed it until [`Event::Bounds`](crate::Event::Bounds) limits it. NADA's
    /// queue grows with it, up to 20 Mbit/s (`RMAX` of RFC 8698, equation 5). Set it to what the encoder can use.
    pub max: Rate,
    /// The size of the largest UDP payload (RTP packet), without IP and UDP headers; above zero. Controllers scale windows by it.
    pub packet_size: DataSize,
}

impl Setup {
    /// The packet size if a flow sets none: 1200 bytes, libwebrtc's `kVideoMtu`.
    pub const PACKET_SIZE: DataSize = DataSize::from_bytes(1200);

    /// Returns a setup with packets of at most [`PACKET_SIZE`](Self::PACKET_SIZE).
    pub const fn new(start: Rate, min: Rate, max: Rate) -> Self {
        Self { start, min, max, packet_size: Self::PACKET_SIZE }
    }
    setters! { with_packet_size(packet_size: DataSize) }
    /// Returns a size in proportion to the packet size: `size` if that is [`PACKET_SIZE`](Self::PACKET_SIZE). Numbers that
    /// a source gives in bytes, but which stand for packets, are scaled this way. A size that is not zero stays at least
    /// one byte: a window of zero would stop the flow.
    pub fn scaled(&self, size: DataSize) -> DataSize {
        let factor = self.packet_size.as_bytes() as f64 / Self::PACKET_SIZE.as_bytes() as f64;
        let scaled = DataSize::from_bytes(round_to_u64(size.as_bytes() as f64 * factor));
        scaled.max(size.min(DataSize::from_bytes(1)))
    }
    /// Returns whether the minimum is not above the others, and start, maximum and packet size are above zero.
    pub fn is_valid(&self) -> bool {
        let Self { start, min, max, packet_size } = *self;
        min <= start && min <= max && !start.is_zero() && !max.is_zero() && packet_size > DataSize::ZERO
    }
    /// Returns `min` and `max` as bounds of the target.
    pub fn bounds(&self) -> Bounds {
        Bounds { min: self.min, max: self.max }
    }
}

/// The signals of the send half, and those of the receive half.
pub type SignalTables = (&'static [SignalSpec], &'static [SignalSpec]);

/// The configuration of a controller, which also builds it. [`params!`](crate::params) declares its parameters.
pub trait Config: Parameters + Clone + Send + Sync + 'static {
    /// The signals that the controller emits.
    const SIGNALS: SignalTables = (&[], &[]);
    /// Whether feedback controls the rate. A controller without congestion control sets this to `false`; its send half
    /// then runs without the guard against missing feedback.
    const CONTROLS: bool = true;
    /// Returns the signals of this config. Override it if they are known only at run time; they must not change while
    /// the config lives.
    fn signals(&self) -> SignalTables {
        Self::SIGNALS
    }
    /// Returns whether the rate of the send half can be replaced by a share of the rate of several flows (RFC 8699): whether it has
    /// a [`calculated_rate`](crate::SendHalf::calculated_rate).
    fn couples(&self) -> bool {
        false
    }
    /// Creates the halves, without the guard.
    fn halves(&self, setup: &Setup) -> Controller;
    /// Builds the controller. The send half of a controller that controls its rate runs under the [`Guard`](crate::Guard), which lowers
    /// the rate when feedback stops.
    ///
    /// # Panics
    /// In debug builds, if `setup` contradicts itself ([`Setup::is_valid`]).
    fn build(&self, setup: &Setup) -> Controller {
        debug_assert!(
            setup.is_valid(),
            "start, max and packet size must be above 0, and min not above start and max: {setup:?}"
        );
        let halves = self.halves(setup);
        if Self::CONTROLS { halves.guarded(setup.min) } else { halves }
    }
}

/// An error of building a controller.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The registry has no such controller.
    #[error("there is no controller `{name}`; known: {}", known.join(", "))]
    UnknownController {
        /// The requested name.
        name: String,
        /// The controllers that exist.
        known: Vec<&'static str>,
    },
    /// The config has no such parameter.
    #[error("{controller} has no parameter `{name}`")]
    UnknownField {
        /// The controller.
        controller: String,
        /// The requested name.
        name: String,
        /// The parameters that exist.
        known: Vec<&'static str>,
    },
    /// The value is outside the parameter's range.
    #[error("{controller}: {name} = {value} is outside {} to {} {unit}", range.0, range.1)]
    OutOfRange {
        /// The controller.
        controller: String,
        /// The parameter.
        name: &'static str,
        /// The requested value.
        value: f64,
        /// The lowest and the highest valid value.
        range: (f64, f64),
        /// The unit of value and range.
        unit: &'static str,
    },
    /// The limits contradict each other ([`Setup::is_valid`]).
    #[error(
        "{controller}: need min <= start, min <= max, start and max above 0, packets of at least 1 byte; got min {}, start {}, max {}, {}",
        setup.min, setup.start, setup.max, setup.packet_size
    )]
    Setup {
        /// The controller.
        controller: String,
        /// The rejected limits.
        setup: Setup,
    },
}

/// A named set of parameter values for a controller that is already registered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The name of the preset. It is valid wherever a controller name is.
    pub name: &'static str,
    /// The name of the controller that it configures.
    pub base: &'static str,
    /// The parameters that differ from the base controller's defaults.
    pub values: &'static [(&'static str, f64)],
    /// One line of description.
    pub summary: &'static str,
    /// The document that the preset follows; `None` if it is that of the base controller.
    pub source: Option<&'static str>,
}

/// A registered controller.
pub struct Entry {
    name: &'static str,
    summary: Cow<'static, str>,
    source: &'static str,
    factory: Arc<dyn Factory>,
    /// Replaces the signals of the factory.
    signals: Option<SignalTables>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}

impl Entry {
    /// Creates an entry from a config with its default values. `source` names the document that the controller follows.
    pub fn new<C: Config>(name: &'static str, summary: &'static str, source: &'static str, config: C) -> Self {
        Self { name, summary: summary.into(), source, factory: Arc::new(config), signals: None }
    }
    /// Returns the preset of this controller: the same signals, with other default values.
    ///
    /// # Errors
    /// Returns an error if a value of the preset has no parameter or is out of range.
    pub fn preset(&self, preset: &Preset) -> Result<Self, ConfigError> {
        let values: Vec<_> = preset.values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Ok(Self {
            name: preset.name,
            summary: preset.summary.into(),
            source: preset.source.unwrap_or(self.source),
            factory: self.factory.configured(preset.name, &values)?,
            signals: self.signals,
        })
    }
    /// Returns the same controller for a world in which another implementation runs one of its halves; `signals` are
    /// those that are available there.
    pub fn with_remote_half(self, summary: String, signals: SignalTables) -> Self {
        Self { summary: summary.into(), signals: Some(signals), ..self }
    }
    /// Returns the name by which a registry finds it.
    pub fn name(&self) -> &'static str {
        self.name
    }
    /// Returns one line of description.
    pub fn summary(&self) -> &str {
        &self.summary
    }
    /// Returns the document that the controller follows.
    pub fn source(&self) -> &'static str {
        self.source
    }
    /// Returns the parameters, with the default values of this entry.
    pub fn fields(&self) -> Vec<FieldInfo> {
        self.factory.fields()
    }
    /// Returns the signals of the send half and of the receive half.
    pub fn signals(&self) -> SignalTables {
        self.signals.unwrap_or_else(|| self.factory.signals())
    }
    /// Returns whether feedback controls the rate ([`Config::CONTROLS`]).
    pub fn controls(&self) -> bool {
        self.factory.controls()
    }
    /// Returns whether flows under it can be coupled ([`Config::couples`]).
    pub fn couples(&self) -> bool {
        self.factory.couples()
    }
    /// Builds the controller with some parameters changed ([`Config::build`]). A flag is 0 or 1, a choice its number; [`fields`](Self::fields)
    /// lists names, units, ranges and defaults.
    ///
    /// # Errors
    /// Returns an error if a change names no parameter, a value is out of range, or `setup` contradicts itself.
    pub fn build(&self, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError> {
        if !setup.is_valid() {
            return Err(ConfigError::Setup { controller: self.name.to_owned(), setup: *setup });
        }
        self.factory.build(self.name, setup, changes)
    }
}

/// [`Config`] without its type.
trait Factory: Send + Sync {
    fn fields(&self) -> Vec<FieldInfo>;
    fn signals(&self) -> SignalTables;
    fn controls(&self) -> bool;
    fn couples(&self) -> bool;
    fn configured(&self, name: &str, changes: &[(String, f64)]) -> Result<Arc<dyn Factory>, ConfigError>;
    fn build(&self, name: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError>;
}

impl<C: Config> Factory for C {
    fn fields(&self) -> Vec<FieldInfo> {
        self.list()
    }
    fn signals(&self) -> SignalTables {
        Config::signals(self)
    }
    fn controls(&self) -> bool {
        C::CONTROLS
    }
    fn couples(&self) -> bool {
        Config::couples(self)
    }
    fn configured(&self, name: &str, changes: &[(String, f64)]) -> Result<Arc<dyn Factory>, ConfigError> {
        Ok(Arc::new(changed(self, name, changes)?))
    }
    fn build(&self, name: &str, setup: &Setup, changes: &[(String, f64)]) -> Result<Controller, ConfigError> {
        Ok(Config::build(&changed(self, name, changes)?, setup))
    }
}

fn changed<C: Config>(config: &C, controller: &str, changes: &[(String, f64)]) -> Result<C, ConfigError> {
    let mut config = config.clone();
    for (name, value) in changes {
        let fields = config.list();
        let field = fields.iter().find(|f| f.name == name).ok_or_else(|| ConfigError::UnknownField {
            controller: controller.to_owned(),
            name: name.clone(),
            known: fields.iter().map(|f| f.name).collect(),
        })?;
        let (name, range, unit, value) = (field.name, field.range, field.unit, *value);
        if !(range.0..=range.1).contains(&value) {
            return Err(ConfigError::OutOfRange { controller: controller.to_owned(), name, value, range, unit });
        }
        config.set(name, value);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_sizes_are_in_proportion_to_packets_and_not_zero() {
        let bytes = DataSize::from_bytes;
        let scaled = |packet, size| {
            let setup = Setup::new(Rate::from_kbps(300), Rate::ZERO, Rate::from_kbps(2000));
            Setup { packet_size: bytes(packet), ..setup }.scaled(bytes(size))
        };
        assert_eq!([scaled(1200, 500), scaled(600, 500), scaled(2400, 500)], [bytes(500), bytes(250), bytes(1000)]);
        assert_eq!([scaled(1, 500), scaled(1, 1), scaled(1, 0)], [bytes(1), bytes(1), bytes(0)]);
    }
}
