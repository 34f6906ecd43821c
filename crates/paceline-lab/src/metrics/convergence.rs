// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rise and convergence: when a flow first receives its fair share, and from when on it keeps it. The fair share is an equal
//! part of the slowest hop of its route among the flows that cross the hop at that time, or the maximum of its sources where
//! that is less.

use super::{MetricSpec, RunData, accumulators::whole_seconds};
use paceline_netsim::records::MetricKind;
use paceline_units::Time;

pub(super) const RISE_TIME: MetricSpec = MetricSpec::new(
    "rise_time_s",
    MetricKind::Time,
    "time until a flow first receives 90 % of its fair share or of its sources' maximum in a second; of the first flow, if \
     none is named",
    |r, flow, _| r.flow(flow).rise_time_s,
)
.with_shares();

pub(super) const CONVERGENCE_TIME: MetricSpec = MetricSpec::new(
    "convergence_time_s",
    MetricKind::Time,
    "time until a flow receives 90 % of its fair share or of its sources' maximum in a second, and from then on at least 80 % \
     in every 5 s; no value if it does not stay there for 5 s; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).convergence_time_s,
)
.with_shares();

/// The share that a flow reaches in a second.
const REACHED: f64 = 0.9;
/// The share that a converged flow keeps over [`KEPT_OVER`] seconds: the rate of GCC falls to 85 % after each over-use.
const KEPT: f64 = 0.8;
const KEPT_OVER: usize = 5;

struct Second {
    end: Time,
    received: f64,
    fair: f64,
}

/// Returns the times after `from` at which a flow first receives its fair share, and from which on it keeps it, s; none if there
/// is none until `to`.
pub(super) fn times(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> (Option<f64>, Option<f64>) {
    let seconds = whole_seconds(from, to).zip(run.rates[flow].received_in(from, to));
    let seconds: Option<Vec<Second>> = seconds
        .map(|((a, b), received)| {
            let fair = fair_bits(run, flow, a, b)?;
            Some(Second { end: b, received: received as f64 * 8.0, fair })
        })
        .collect();
    let Some(seconds) = seconds else { return (None, None) };
    let (risen, settled) = rise_and_convergence(&seconds);
    let time = |second: &Second| (second.end - from).as_secs_f64();
    (risen.map(time), settled.map(time))
}

/// Returns the fair share of a flow in the second from `from` to `to`, bit; `None` if no hop has a capacity.
pub(super) fn fair_bits(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<f64> {
    let (hop, volume) = run.slowest(flow, from, to)?;
    Some((volume.as_bits() as f64 / run.crossing(hop, from).max(1) as f64).min(run.most(flow, from, to)))
}

/// Returns the first second that reaches the share, and the first one that reaches it and begins a time that keeps it.
fn rise_and_convergence(seconds: &[Second]) -> (Option<&Second>, Option<&Second>) {
    let reaches = |second: &&Second| second.received >= REACHED * second.fair;
    let keeps = |span: &[Second]| {
        let (received, fair) = span.iter().fold((0.0, 0.0), |(r, f), s| (r + s.received, f + s.fair));
        received >= KEPT * fair
    };
    let spans = seconds.windows(KEPT_OVER);
    let kept_from = spans.clone().rposition(|span| !keeps(span)).map_or(0, |last| last + 1);
    let settled = seconds.get(kept_from..spans.len()).and_then(|rest| rest.iter().find(reaches));
    (seconds.iter().find(reaches), settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of the seconds in which a flow with these rates, in per cent of its share, rises and converges.
    fn found(rates: &[f64]) -> (Option<Time>, Option<Time>) {
        let second =
            |(n, rate): (usize, &f64)| Second { end: Time::from_secs(n as i64 + 1), received: *rate, fair: 100.0 };
        let seconds: Vec<Second> = rates.iter().enumerate().map(second).collect();
        let (risen, settled) = rise_and_convergence(&seconds);
        (risen.map(|s| s.end), settled.map(|s| s.end))
    }

    #[test]
    fn convergence_is_a_rise_that_lasts() {
        let at = |second: i64| Some(Time::from_secs(second));
        assert_eq!(found(&[20.0, 50.0, 90.0, 85.0, 85.0, 95.0, 85.0, 90.0]), (at(3), at(3)), "reached and kept");
        // Mean of seconds 3 to 7: 79. The span from second 4 has 80.
        assert_eq!(
            found(&[95.0, 99.0, 90.0, 85.0, 75.0, 75.0, 70.0, 95.0, 95.0]),
            (at(1), None),
            "one span is left, from 85"
        );
        assert_eq!(found(&[95.0, 99.0, 90.0, 90.0, 75.0, 75.0, 64.0, 96.0, 95.0]), (at(1), at(4)), "79.8, then 80");
        let cycle: Vec<f64> = (0..30).map(|n| if n % 10 < 5 { 100.0 } else { 40.0 }).collect();
        assert_eq!(found(&cycle), (at(1), None), "a limit cycle");
        assert_eq!(found(&[95.0; 4]), (at(1), None), "shorter than 5 s");
        assert_eq!(found(&[80.0; 9]), (None, None));
        assert_eq!(found(&[]), (None, None));
    }
}
