//! The internal variables that a controller exposes. Each is declared once and emitted as (index, value).

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

/// Collects the emitted signals. If it is disabled, an emission costs one branch.
#[derive(Debug)]
pub struct Signals {
    enabled: bool,
    values: Vec<(u8, f64)>,
}

impl Signals {
    /// Returns a collector that ignores all values.
    pub const fn disabled() -> Self {
        Self { enabled: false, values: Vec::new() }
    }
    /// Returns a collector that keeps the values until they are drained.
    pub const fn enabled() -> Self {
        Self { enabled: true, values: Vec::new() }
    }
    /// Emits a value of the signal with this index in the controller's table.
    #[inline]
    pub fn emit(&mut self, index: u8, value: f64) {
        if self.enabled {
            self.values.push((index, value));
        }
    }
    /// Removes and returns the values since the last call, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (u8, f64)> + '_ {
        self.values.drain(..)
    }
    /// Returns whether [`drain`](Self::drain) would return nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
