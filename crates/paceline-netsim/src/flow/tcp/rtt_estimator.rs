// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round-trip time estimate and retransmission timeout (RFC 6298, and the variant of the Linux kernel).

use super::profile::RtoRule;
use paceline_units::TimeDelta;

/// RFC 6298, rule 2.1.
pub(super) const RTO_INITIAL: TimeDelta = TimeDelta::from_secs(1);
/// RFC 6298, rule 5.7: the timeout after a lost SYN, when no round-trip time is known. `TCP_TIMEOUT_FALLBACK` in Linux.
const RTO_AFTER_LOST_SYN: TimeDelta = TimeDelta::from_secs(3);
/// Clock granularity G: the timestamps of today's hosts count milliseconds (RFC 7323, section 5.4).
const GRANULARITY: TimeDelta = TimeDelta::from_millis(1);
/// 1 / alpha and 1 / beta of RFC 6298, section 2; K.
const ALPHA_INVERSE: i64 = 8;
const BETA_INVERSE: i64 = 4;
const K: i64 = 4;

#[derive(Debug)]
pub(super) struct RttEstimator {
    rule: RtoRule,
    maximum: TimeDelta,
    srtt: Option<TimeDelta>,
    /// RFC 6298's RTTVAR; the kernel's `mdev`.
    variance: TimeDelta,
    /// Linux: largest variance term of this round trip, and the variance term in force (`mdev_max`, `rttvar`).
    largest: TimeDelta,
    term: TimeDelta,
    /// The round trip ends when this byte is acknowledged (`rtt_seq`).
    round_end: u64,
    rto: TimeDelta,
}

/// RFC 6298, rule 2.3: `SRTT <- 7/8 SRTT + 1/8 R'`.
fn smoothed(srtt: TimeDelta, sample: TimeDelta) -> TimeDelta {
    srtt + (sample - srtt) / ALPHA_INVERSE
}

/// RFC 6298, rule 2.3: `RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R'|`, with the old SRTT.
fn deviation(variance: TimeDelta, srtt: TimeDelta, sample: TimeDelta) -> TimeDelta {
    variance + ((srtt - sample).abs() - variance) / BETA_INVERSE
}

/// Linux: a falling round-trip time raises the deviation eight times more slowly than a rising one.
fn linux_deviation(variance: TimeDelta, srtt: TimeDelta, sample: TimeDelta) -> TimeDelta {
    let excess = (srtt - sample).abs() - variance;
    let slow = sample < srtt && excess.is_positive();
    variance + if slow { excess / (BETA_INVERSE * 8) } else { excess / BETA_INVERSE }
}

impl RttEstimator {
    pub fn new(rule: RtoRule, maximum: TimeDelta) -> Self {
        let zero = TimeDelta::ZERO;
        Self { rule, maximum, srtt: None, variance: zero, largest: zero, term: zero, round_end: 0, rto: RTO_INITIAL }
    }

    /// Handles a round-trip time sample from an ACK up to `acknowledged`, when everything below `next` had been sent.
    #[inline]
    pub fn handle_sample(&mut self, sample: TimeDelta, acknowledged: u64, next: u64) {
        let old = self.srtt;
        self.srtt = Some(old.map_or(sample, |srtt| smoothed(srtt, sample)));
        let srtt = self.srtt.unwrap_or(sample);
        match self.rule {
            RtoRule::Rfc6298 { minimum } => {
                self.variance = old.map_or(sample / 2, |srtt| deviation(self.variance, srtt, sample));
                self.rto = (srtt + (self.variance * K).max(GRANULARITY)).max(minimum);
            }
            RtoRule::Linux { minimum } => {
                match old {
                    None => {
                        self.variance = sample / 2;
                        self.term = (self.variance * K).max(minimum);
                        self.largest = self.term;
                        self.round_end = next;
                    }
                    Some(srtt) => {
                        self.variance = linux_deviation(self.variance, srtt, sample);
                        self.largest = self.largest.max(self.variance * K);
                        self.term = self.term.max(self.largest);
                        if acknowledged > self.round_end {
                            if self.largest < self.term {
                                self.term = self.term - (self.term - self.largest) / BETA_INVERSE;
                            }
                            self.round_end = next;
                            self.largest = minimum;
                        }
                    }
                }
                self.rto = srtt + self.term;
            }
        }
        self.rto = self.rto.min(self.maximum);
    }

    /// Doubles the timeout after the timer expired (RFC 6298, rule 5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.maximum);
    }

    /// Handles the opening of a connection whose SYN was retransmitted, so that no round-trip time is known (rule 5.7).
    pub fn handle_lost_syn(&mut self) {
        self.rto = RTO_AFTER_LOST_SYN;
    }

    #[inline]
    pub fn srtt(&self) -> Option<TimeDelta> {
        self.srtt
    }

    #[inline]
    pub fn rto(&self) -> TimeDelta {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tcp::Profile;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn estimate(rule: RtoRule) -> RttEstimator {
        RttEstimator::new(rule, Profile::RFC.rto_max)
    }

    #[test]
    fn follows_the_equations_of_rfc_6298() {
        let mut with_floor = estimate(Profile::RFC.rto);
        let mut free = estimate(RtoRule::Rfc6298 { minimum: TimeDelta::ZERO });
        assert_eq!(free.rto(), TimeDelta::from_secs(1));
        for (sample, srtt, variance, rto) in [(100, 100_000, 50_000, 300_000), (120, 102_500, 42_500, 272_500)] {
            with_floor.handle_sample(MS(sample), 0, 0);
            free.handle_sample(MS(sample), 0, 0);
            assert_eq!(free.srtt(), Some(TimeDelta::from_micros(srtt)));
            assert_eq!(free.variance, TimeDelta::from_micros(variance));
            assert_eq!(free.rto(), TimeDelta::from_micros(rto));
            assert_eq!(with_floor.rto(), TimeDelta::from_secs(1));
        }
        // With a constant round-trip time the variance vanishes and the granularity remains.
        for _ in 0..200 {
            free.handle_sample(MS(100), 0, 0);
        }
        let rto = free.rto().as_nanos();
        assert!((101_000_000..101_000_100).contains(&rto), "{rto}");
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_until_a_sample() {
        let mut rtt = estimate(Profile::RFC.rto);
        let mut seen = Vec::new();
        for _ in 0..7 {
            rtt.back_off();
            seen.push(rtt.rto().as_nanos() / 1_000_000_000);
        }
        assert_eq!(seen, [2, 4, 8, 16, 32, 60, 60]);
        rtt.handle_sample(MS(400), 0, 0);
        assert_eq!(rtt.rto(), MS(1200));
    }

    #[test]
    fn linux_bounds_the_variance_term_and_not_the_timeout() {
        let mut rtt = RttEstimator::new(Profile::LINUX.rto, Profile::LINUX.rto_max);
        for n in 0..100 {
            rtt.handle_sample(MS(100), n * 10, n * 10 + 5);
        }
        let rto = rtt.rto().as_nanos();
        assert!((300_000_000..301_000_000).contains(&rto), "{rto}"); // 100 ms + 200 ms
        rtt.handle_sample(MS(400), 2000, 2010);
        // mdev about 75 ms after a step of 300: 4 x that, at once.
        let rto = rtt.rto().as_nanos();
        assert!((430_000_000..445_000_000).contains(&rto), "{rto}");
    }
}
