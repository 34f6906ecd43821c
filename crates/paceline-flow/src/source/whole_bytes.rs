//! Frames are whole bytes, rates are not: what rounding takes from one frame goes to the next, so that the sum of
//! all frames stays within half a byte of the exact sum.

use paceline_units::{DataSize, round_to_u64};

/// The part of a byte that the frames so far still owe, from -0.5 to 0.5.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeBytes {
    carry: f64,
}

impl WholeBytes {
    /// The whole bytes of a frame of `exact` bytes; at least one.
    pub(super) fn take(&mut self, exact: f64) -> DataSize {
        let wanted = exact + self.carry;
        let whole = round_to_u64(wanted).max(1);
        self.carry = (wanted - whole as f64).max(-0.5);
        DataSize::from_bytes(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_add_up() {
        let mut bytes = WholeBytes::default();
        let sizes: Vec<u64> = (0..6).map(|_| bytes.take(4166.75).as_bytes()).collect();
        assert_eq!(sizes, [4167, 4167, 4166, 4167, 4167, 4167]); // .75, .5, .25, 1.0, .75, .5
        assert_eq!(WholeBytes::default().take(0.2).as_bytes(), 1);
    }
}
