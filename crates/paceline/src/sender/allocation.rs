// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides a flow's rate among its streams: each gets its minimum, then the rest is shared by priority, up to each
//! stream's maximum.

use paceline_units::Rate;

#[derive(Clone, Copy, Debug)]
pub(super) struct RateRequest {
    pub priority: f64,
    pub min: Rate,
    pub max: Rate,
}

/// Writes each stream's share of `total` into `shares`. A stream whose minimum does not fit gets what is left.
pub(super) fn divide(total: Rate, requests: &[RateRequest], shares: &mut [Rate]) {
    let mut left = total;
    for (share, request) in shares.iter_mut().zip(requests) {
        *share = request.min.min(left);
        left -= *share;
    }
    // Each round either assigns all that is left or brings a stream to its maximum, so the loop ends.
    loop {
        let open = |share: &Rate, request: &RateRequest| *share < request.max;
        let weight: f64 = shares.iter().zip(requests).filter(|(s, c)| open(s, c)).map(|(_, c)| c.priority).sum();
        if left.is_zero() || weight <= 0.0 {
            return;
        }
        let pot = left;
        let mut filled = false;
        for (share, request) in shares.iter_mut().zip(requests).filter(|(s, c)| **s < c.max) {
            let want = pot.scale(request.priority / weight).min(left);
            let room = request.max - *share;
            filled |= want >= room;
            let take = want.min(room);
            *share += take;
            left -= take;
        }
        if !filled {
            return; // all is assigned, except for rounding
        }
    }
}

/// The rate above its minimum that a suspended stream needs to resume, at least (libwebrtc's `kMinToggleBitrateBps`,
/// `call/bitrate_allocator.cc`).
const RESUME_MARGIN: Rate = Rate::from_kbps(20);
/// The same as a share of its minimum (`kToggleFactor`).
const RESUME_SHARE: f64 = 0.1;

/// Returns the rate that a stream of this minimum needs for itself. A suspended one needs more.
pub(super) fn needed(min: Rate, is_suspended: bool) -> Rate {
    if is_suspended { min + RESUME_MARGIN.max(min.scale(RESUME_SHARE)) } else { min }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn shares(total: u64, requests: &[(f64, u64, u64)]) -> Vec<u64> {
        let requests: Vec<RateRequest> = requests
            .iter()
            .map(|&(priority, min, max)| RateRequest { priority, min: Rate::from_kbps(min), max: Rate::from_kbps(max) })
            .collect();
        let mut shares = vec![Rate::ZERO; requests.len()];
        divide(Rate::from_kbps(total), &requests, &mut shares);
        shares.iter().map(|r| r.as_bps() / 1000).collect()
    }

    /// The same as next to a stream that requests nothing.
    #[test]
    fn single_stream_gets_the_total_within_its_limits() {
        for (total, share) in [(0, 0), (30, 30), (50, 50), (60, 60), (2000, 2000), (2001, 2000)] {
            assert_eq!(shares(total, &[(0.5, 50, 2000)]), [share]);
            assert_eq!(shares(total, &[(0.5, 50, 2000), (1.0, 0, 0)]), [share, 0]);
        }
        assert_eq!(shares(100, &[(1.0, 80, 60)]), [80], "the minimum takes precedence");
    }

    #[test]
    fn a_suspended_stream_needs_a_margin() {
        let kbps = |min, suspended| needed(Rate::from_kbps(min), suspended).as_bps() / 1000;
        assert_eq!([kbps(600, false), kbps(600, true)], [600, 660], "a tenth");
        assert_eq!([kbps(150, false), kbps(150, true)], [150, 170], "20 kbit/s");
    }

    #[test]
    fn allocates_minima_first_then_by_priority_up_to_maxima() {
        let audio = (1.0, 32, 32);
        assert_eq!(shares(1000, &[audio, (1.0, 50, 2000)]), [32, 968]);
        assert_eq!(shares(40, &[audio, (1.0, 50, 2000)]), [32, 8]);
        assert_eq!(shares(932, &[audio, (2.0, 0, 2000), (1.0, 0, 2000)]), [32, 600, 300]);
        assert_eq!(shares(932, &[audio, (2.0, 0, 400), (1.0, 0, 2000)]), [32, 400, 500]);
        assert_eq!(shares(9000, &[audio, (2.0, 0, 400), (1.0, 0, 2000)]), [32, 400, 2000]);
    }
}
