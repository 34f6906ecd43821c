//! What a controller lets one see of its inside: declared once, emitted as (signal, value).

/// A signal's shape: plots, columns and docs follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalShape {
    /// A number over time.
    Series,
    /// One of these states; its value is the index.
    State(&'static [&'static str]),
}

/// A declared signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalSpec {
    /// The paper's name for it.
    pub name: &'static str,
    /// Unit of its values; empty for states.
    pub unit: &'static str,
    /// What its values are.
    pub shape: SignalShape,
}

impl SignalSpec {
    /// A number over time.
    pub const fn series(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, shape: SignalShape::Series }
    }
    /// A state over time.
    pub const fn state(name: &'static str, states: &'static [&'static str]) -> Self {
        Self { name, unit: "", shape: SignalShape::State(states) }
    }
}

/// Where a half puts its signals. When nobody listens an emission costs one branch.
#[derive(Debug)]
pub struct Signals {
    heard: bool,
    values: Vec<(u8, f64)>,
}

impl Signals {
    /// Nobody listens.
    pub const fn unheard() -> Self {
        Self { heard: false, values: Vec::new() }
    }
    /// Keeps what is emitted until it is drained.
    pub const fn heard() -> Self {
        Self { heard: true, values: Vec::new() }
    }
    /// Emits a value of the signal at this index of the controller's table.
    #[inline]
    pub fn emit(&mut self, index: u8, value: f64) {
        if self.heard {
            self.values.push((index, value));
        }
    }
    /// What was emitted since the last call, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = (u8, f64)> + '_ {
        self.values.drain(..)
    }
    /// True when [`drain`](Self::drain) would yield nothing.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
