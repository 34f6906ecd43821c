//! Rounding of frame sizes to whole bytes. The rounding error of each frame is carried to the next one, so that the sum
//! of all frames stays within half a byte of the exact sum.

use paceline_units::{DataSize, round_to_u64};

#[derive(Clone, Debug, Default)]
pub(super) struct ByteRounder {
    /// Exact minus rounded size of all frames so far, in bytes, -0.5 to 0.5.
    carry: f64,
}

impl ByteRounder {
    /// Rounds a frame of `exact` bytes to whole bytes, at least one.
    pub(super) fn round(&mut self, exact: f64) -> DataSize {
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
    fn rounding_errors_are_carried() {
        let mut bytes = ByteRounder::default();
        let sizes: Vec<u64> = (0..6).map(|_| bytes.round(4166.75).as_bytes()).collect();
        assert_eq!(sizes, [4167, 4167, 4166, 4167, 4167, 4167]); // .75, .5, .25, 1.0, .75, .5
        assert_eq!(ByteRounder::default().round(0.2).as_bytes(), 1);
    }
}
