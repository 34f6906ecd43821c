// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of a sender.

use crate::harness::*;
use paceline_abi::PacelineLimits;
use paceline_c::{PACELINE_ERROR_ARGUMENT, PACELINE_OK};

#[test]
fn highest_rate_must_be_above_zero() {
    let limits = |min_bps, max_bps| PacelineLimits { min_bps, max_bps, ..LIMITS };
    assert_eq!(Sender::new("googcc", limits(0, 0)).err(), Some(PACELINE_ERROR_ARGUMENT));
    assert!(last_error().contains("max_bps above 0"), "{}", last_error());
    let mut sender = Sender::new("googcc", limits(0, 1)).expect("1 bit/s is enough");
    assert_eq!(sender.bounds(0, 0, 0), PACELINE_ERROR_ARGUMENT);
    assert_eq!(sender.bounds(0, 0, 1), PACELINE_OK);
}
