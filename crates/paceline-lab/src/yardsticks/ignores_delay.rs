// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-ignores-delay`: GoogCC whose over-use detector sees no trend, so that losses alone lower the rate.

use super::altered::{Altered, NoAlteration};
use paceline::Entry;

pub(super) const NAME: &str = "faulty-ignores-delay";

pub(super) fn entry() -> Entry {
    Entry::new(NAME, "one fault: googcc without the over-use detector, so that losses alone count", SOURCE, config())
}

const SOURCE: &str = "googcc, with a gain of the trend of 0";

/// The detector compares `gain` times the trend with its threshold, so with a gain of 0 the trend is always normal.
fn config() -> Altered<NoAlteration> {
    Altered::googcc(NoAlteration).with_number("gain", 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::altered::tests::{SETUP, feed};
    use super::*;
    use paceline::Config;

    #[test]
    fn growing_delay_lowers_nothing_and_losses_do() {
        let mut half = config().halves(&SETUP).send.unwrap();
        // The delay grows by 200 ms each second. Plain GoogCC falls: `wrapped_controller_falls_with_delay`.
        let targets = feed(&mut *half, (0, 5000), |ms| Some(20 + ms / 5));
        assert!(targets.windows(2).all(|pair| pair[0] <= pair[1]), "{targets:?}");
        let lossy = feed(&mut *half, (5000, 15_000), |ms| (ms % 20 != 0).then_some(1020));
        assert!(*lossy.last().unwrap() < targets.last().unwrap() * 8 / 10, "{targets:?} {lossy:?}");
    }

    #[test]
    fn wrapped_controller_falls_with_delay() {
        let mut half = Altered::googcc(NoAlteration).halves(&SETUP).send.unwrap();
        let targets = feed(&mut *half, (0, 5000), |ms| Some(20 + ms / 5));
        assert!(*targets.last().unwrap() < 900, "{targets:?}");
    }
}
