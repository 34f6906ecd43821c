// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last value of each signal of a half.

use crate::status::{Failure, PACELINE_ERROR_BUFFER};
use crate::writable;
use paceline::SignalSpec;

/// The last value of each signal; NaN for one without a value.
#[derive(Clone, Debug)]
pub(crate) struct LastSignals {
    values: Vec<f64>,
}

impl LastSignals {
    /// Returns signals without values.
    pub fn new(table: &[SignalSpec]) -> Self {
        Self { values: vec![f64::NAN; table.len()] }
    }

    /// Sets the value of the signal with this index.
    pub fn set(&mut self, index: u8, value: f64) {
        if let Some(last) = self.values.get_mut(usize::from(index)) {
            *last = value;
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
