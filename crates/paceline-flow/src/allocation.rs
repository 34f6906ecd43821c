//! Divides a flow's rate among its streams: everyone gets their minimum, then priorities share what is left, and
//! nobody gets more than their maximum.

use paceline_units::Rate;

/// What a stream asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub priority: f64,
    pub min: Rate,
    pub max: Rate,
}

/// Writes each stream's share of `total` into `shares`. Streams whose minimum does not fit any more get what is left.
pub(crate) fn divide(total: Rate, claims: &[Claim], shares: &mut [Rate]) {
    let mut left = total;
    for (share, claim) in shares.iter_mut().zip(claims) {
        *share = claim.min.min(left);
        left -= *share;
    }
    // Each round either hands out all that is left or fills a stream up, so it ends.
    loop {
        let open = |share: &Rate, claim: &Claim| *share < claim.max;
        let weight: f64 = shares.iter().zip(claims).filter(|(s, c)| open(s, c)).map(|(_, c)| c.priority).sum();
        if left.is_zero() || weight <= 0.0 {
            return;
        }
        let pot = left;
        let mut filled = false;
        for (share, claim) in shares.iter_mut().zip(claims).filter(|(s, c)| **s < c.max) {
            let want = pot.scale(claim.priority / weight).min(left);
            let room = claim.max - *share;
            filled |= want >= room;
            let take = want.min(room);
            *share += take;
            left -= take;
        }
        if !filled {
            return; // all handed out, but for a bit of rounding
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(total: u64, claims: &[(f64, u64, u64)]) -> Vec<u64> {
        let claims: Vec<Claim> = claims
            .iter()
            .map(|&(priority, min, max)| Claim { priority, min: Rate::from_kbps(min), max: Rate::from_kbps(max) })
            .collect();
        let mut shares = vec![Rate::ZERO; claims.len()];
        divide(Rate::from_kbps(total), &claims, &mut shares);
        shares.iter().map(|r| r.as_bps() / 1000).collect()
    }

    #[test]
    fn minima_then_priorities_then_maxima() {
        let audio = (1.0, 32, 32);
        assert_eq!(shares(1000, &[audio, (1.0, 50, 2000)]), [32, 968]);
        assert_eq!(shares(40, &[audio, (1.0, 50, 2000)]), [32, 8]);
        assert_eq!(shares(932, &[audio, (2.0, 0, 2000), (1.0, 0, 2000)]), [32, 600, 300]);
        assert_eq!(shares(932, &[audio, (2.0, 0, 400), (1.0, 0, 2000)]), [32, 400, 500]);
        assert_eq!(shares(9000, &[audio, (2.0, 0, 400), (1.0, 0, 2000)]), [32, 400, 2000]);
    }
}
