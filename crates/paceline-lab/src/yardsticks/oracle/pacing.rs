//! The pacing rate for a share over time.
//!
//! A pacer computes the time until the next packet from the rate at which the last one left. So that packets follow a share that
//! changes in between, the pacing rate at t is P / g: P is the size of a packet, g the time in which the share carries P from t on.
//! A gap reaches across an outage in this way, and no packet leaves in it.

use super::{Steps, push, rate_at};
use paceline_units::{Time, TimeDelta};

/// Rates before a change are computed at this distance.
const STEP: TimeDelta = TimeDelta::from_millis(1);
/// The time that the share needs to carry a packet after its last step is not above this.
const LONGEST: f64 = 3600.0;

/// Returns the pacing rate over time for a share over time and packets of this size in bits.
pub(super) fn gaps(share: &Steps, packet: f64) -> Steps {
    let mut steps = Steps::new();
    for (n, (from, bps)) in share.iter().enumerate() {
        let Some((until, _)) = share.get(n + 1) else {
            push(&mut steps, *from, *bps);
            break;
        };
        push(&mut steps, *from, packet / gap(share, *from, packet));
        if *bps <= 0.0 {
            continue;
        }
        // From here on, the next packet reaches into the next step.
        let reach = TimeDelta::from_secs_f64((packet / bps).min(LONGEST));
        let mut at = if *until - *from > reach { *until - reach } else { *from + STEP };
        while at < *until {
            push(&mut steps, at, packet / gap(share, at, packet));
            at += STEP;
        }
    }
    steps
}

/// Returns the time, in s, in which the share carries this many bits from `from` on.
fn gap(share: &Steps, from: Time, bits: f64) -> f64 {
    let (mut left, mut at) = (bits, from);
    let next = share.partition_point(|(start, _)| *start <= from);
    for (until, _) in &share[next..] {
        let (bps, span) = (rate_at(share, at), (*until - at).as_secs_f64());
        if bps * span >= left {
            return (at - from).as_secs_f64() + left / bps;
        }
        left -= bps * span;
        at = *until;
    }
    ((at - from).as_secs_f64() + left / rate_at(share, at)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// By hand, packets of 10 kbit: at 1 Mbit/s they take 10 ms. A packet at 1 s minus 4 ms has 4 kbit before the outage of 500 ms and
    /// 6 kbit after it at 2 Mbit/s, 3 ms: 507 ms.
    #[test]
    fn a_gap_reaches_across_an_outage() {
        let share = vec![(ms(0), 1e6), (ms(1000), 0.0), (ms(1500), 2e6)];
        assert!((gap(&share, ms(0), 1e4) - 0.010).abs() < 1e-12);
        assert!((gap(&share, ms(996), 1e4) - 0.507).abs() < 1e-12);
        let paced = gaps(&share, 1e4);
        assert_eq!(paced[0], (ms(0), 1e6));
        assert_eq!(paced[1].0, ms(991), "at 990 ms the packet ends with the step, so the rate is the share");
        assert_eq!(paced.last(), Some(&(ms(1500), 2e6)));
    }
}
