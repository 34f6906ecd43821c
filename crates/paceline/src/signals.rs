// SPDX-License-Identifier: MIT OR Apache-2.0
//! The internal variables that a controller exposes. Each is declared once, as a variant of an enum, and emitted by that
//! name. Outside a controller it is its index in the table of the declared signals.

use alloc::vec::Vec;

/// The kind of values of a signal; plots, columns and docs depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalShape {
    /// A number over time.
    Series,
    /// One of these states; the value is the index.
    State(&'static [&'static str]),
}

/// A declared signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalSpec {
    /// The name, as in the paper.
    pub name: &'static str,
    /// The unit of the values; empty for states.
    pub unit: &'static str,
    /// The kind of values.
    pub shape: SignalShape,
}

impl SignalSpec {
    /// Declares a number over time.
    pub const fn series(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, shape: SignalShape::Series }
    }
    /// Declares a state over time.
    pub const fn state(name: &'static str, states: &'static [&'static str]) -> Self {
        Self { name, unit: "", shape: SignalShape::State(states) }
    }
}

/// The names of the signals of a half: an enum that [`signal_names!`](crate::signal_names) declares.
pub trait SignalName: Copy {
    /// The declared signals, in the order of the variants.
    const TABLE: &'static [SignalSpec];
    /// Returns the index in the table.
    fn index(self) -> u8;
}

/// Declares signals: an enum with a variant for each, which is a [`SignalName`](crate::SignalName).
///
/// ```
/// paceline::signal_names! {
///     /// The signals of a half.
///     enum MySignal {
///         Gradient = series("d_m", "ms"),
///         Usage = state("usage", &["normal", "over"]),
///     }
/// }
/// # use paceline::SignalName;
/// assert_eq!((MySignal::Usage.index(), MySignal::TABLE[1].name), (1, "usage"));
/// ```
#[macro_export]
macro_rules! signal_names {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variant:ident = $shape:ident($($argument:expr),* $(,)?)),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $(
            #[doc = concat!("`", stringify!($shape($($argument),*)), "`")]
            $variant
        ),+ }

        impl $crate::SignalName for $name {
            const TABLE: &'static [$crate::SignalSpec] = &[$($crate::SignalSpec::$shape($($argument),*)),+];
            #[inline]
            fn index(self) -> u8 {
                self as u8
            }
        }

        const _: () = assert!(<$name as $crate::SignalName>::TABLE.len() <= 256, "a table has at most 256 signals");
    };
}

/// Collects the emitted signals. If it is disabled, an emission costs one branch.
///
/// A drained value has the index of its signal in the table of [`Entry::signals`](crate::Entry::signals):
///
/// ```
/// use paceline::{Event, Feedback, PacketReport, Registry, Setup, Signals};
/// use paceline_units::{DataSize, Rate, RemoteTime, Time};
///
/// let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
/// let registry = Registry::standard();
/// let entry = registry.get("googcc").unwrap();
/// let mut half = entry.build(&setup, &[])?.send.unwrap();
/// let mut signals = Signals::enabled();
/// let size = DataSize::from_bytes(1200);
/// let packets = [PacketReport::new(0, Time::ZERO, size, Some(RemoteTime::from_millis(20)))];
/// let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO);
/// half.handle_event(Time::from_millis(50), &Event::Feedback(&feedback), &mut signals);
/// let (_, rate) = signals.drain().find(|(index, _)| entry.signals().0[usize::from(*index)].name == "A").unwrap();
/// assert_eq!(rate, half.decision().target.as_bps_f64());
/// # Ok::<(), paceline::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signals {
    enabled: bool,
    /// If set, only signals of this table are accepted.
    table: Option<&'static [SignalSpec]>,
    values: Vec<(u8, f64)>,
}

impl Signals {
    /// Returns a collector that ignores all values.
    pub const fn disabled() -> Self {
        Self { enabled: false, table: None, values: Vec::new() }
    }
    /// Returns a collector that keeps the values until they are drained.
    pub const fn enabled() -> Self {
        Self { enabled: true, table: None, values: Vec::new() }
    }
    /// Returns a collector for a test: it keeps the values, and panics if a signal is not declared in this table.
    pub const fn checked(table: &'static [SignalSpec]) -> Self {
        Self { enabled: true, table: Some(table), values: Vec::new() }
    }
    /// Returns whether emitted values are kept.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }
    /// Emits a value of a signal.
    #[inline]
    pub fn emit<S: SignalName>(&mut self, signal: S, value: f64) {
        if self.enabled {
            let index = signal.index();
            self.keep(index, value, &S::TABLE[usize::from(index)]);
        }
    }
    /// Keeps a value. Not inlined, because a half has many emissions and mostly none is kept.
    #[cold]
    fn keep(&mut self, index: u8, value: f64, emitted: &SignalSpec) {
        if let Some(table) = self.table {
            let declared = table.get(usize::from(index));
            assert!(declared == Some(emitted), "`{}` is not signal {index} of this half", emitted.name);
        }
        self.values.push((index, value));
    }
    /// Emits a value of the signal with this index in the table of a half whose signals are known only at run time.
    #[inline]
    pub fn emit_index(&mut self, index: u8, value: f64) {
        if self.enabled {
            self.values.push((index, value));
        }
    }
    /// Removes and returns the values since the last call, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (u8, f64)> + '_ {
        self.values.drain(..)
    }
    /// Returns whether [`drain`](Self::drain) would return nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    signal_names! {
        enum Declared {
            Rate = series("A", "bit/s"),
            State = state("sigma", &["hold"]),
        }
    }

    signal_names! {
        enum Other {
            Rate = series("A", "bit/s"),
            Threshold = series("gamma", "ms"),
        }
    }

    #[test]
    fn checked_collector_accepts_declared_signals() {
        let mut signals = Signals::checked(Declared::TABLE);
        signals.emit(Declared::State, 0.0);
        signals.emit(Declared::Rate, 2.0);
        signals.emit(Other::Rate, 1.0);
        assert_eq!(signals.drain().collect::<Vec<_>>(), [(1, 0.0), (0, 2.0), (0, 1.0)]);
        let mut none = Signals::disabled();
        none.emit(Other::Threshold, 1.0);
        assert!(none.is_empty() && !none.is_enabled() && signals.is_enabled());
    }

    #[test]
    #[should_panic(expected = "`gamma` is not signal 1 of this half")]
    fn checked_collector_rejects_the_signal_of_another_table() {
        Signals::checked(Declared::TABLE).emit(Other::Threshold, 1.0);
    }
}
