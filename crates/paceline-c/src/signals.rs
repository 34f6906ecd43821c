//! The last value of each signal of a half.

use crate::status::{Failure, PACELINE_ERROR_BUFFER};
use crate::writable;
use paceline::{SignalSpec, Signals};

/// The collector of a half's signals, and the last value of each.
#[derive(Clone, Debug)]
pub(crate) struct LastSignals {
    emitted: Signals,
    /// NaN for a signal without a value.
    values: Vec<f64>,
}

impl LastSignals {
    /// Returns signals without values, which are not collected yet.
    pub fn new(table: &[SignalSpec]) -> Self {
        Self { emitted: Signals::disabled(), values: vec![f64::NAN; table.len()] }
    }

    /// Collects from now on.
    pub fn enable(&mut self) {
        if !self.emitted.is_enabled() {
            self.emitted = Signals::enabled();
        }
    }

    /// Returns the collector for a call of the half.
    pub fn collector(&mut self) -> &mut Signals {
        &mut self.emitted
    }

    /// Takes what the half has emitted.
    pub fn update(&mut self) {
        for (index, value) in self.emitted.drain() {
            if let Some(last) = self.values.get_mut(usize::from(index)) {
                *last = value;
            }
        }
    }

    /// Writes the values to the caller.
    ///
    /// # Safety
    /// `values` is null or has room for `capacity` values.
    pub unsafe fn write(&self, values: *mut f64, capacity: usize) -> Result<(), Failure> {
        writable(values, "values")?;
        if capacity < self.values.len() {
            let needed = self.values.len();
            return Err((PACELINE_ERROR_BUFFER, format!("`values` needs {needed} elements, not {capacity}")));
        }
        // SAFETY: it is aligned and not null and has room, and the caller promises the rest.
        unsafe { values.copy_from_nonoverlapping(self.values.as_ptr(), self.values.len()) };
        Ok(())
    }
}
