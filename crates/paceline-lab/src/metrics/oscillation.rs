// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oscillations of the sending rate (RFC 8868, section 3, metric 9). The RFC counts changes between a high and a low watermark and
//! gives rates as an example. Here the watermarks are relative, so that they fit every path.

use super::{MetricSpec, RunData};
use paceline_netsim::records::{Better, MetricKind};
use paceline_units::Time;
use serde::{Deserialize, Serialize};

pub(super) const OSCILLATION_COUNT: MetricSpec = MetricSpec::new(
    "oscillation_count",
    MetricKind::Count,
    "how often the sending rate of a flow, in bins of 1 s, falls by 30 % of a maximum or more and rises again by as much \
     (RFC 8868, section 3, with relative watermarks); of the first flow, if none is named",
    |r, flow, _| r.flow(flow).oscillations.map(|o| o.count as f64),
)
.with_better(Better::Lower);

pub(super) const OSCILLATION_AMPLITUDE: MetricSpec = MetricSpec::new(
    "oscillation_amplitude",
    MetricKind::Share,
    "mean fall of the oscillations (see `oscillation_count`), over the maximum before; 0 without one; of the first flow, if \
     none is named",
    |r, flow, _| r.flow(flow).oscillations.map(|o| o.amplitude),
)
.with_better(Better::Lower);

pub(super) const OSCILLATION_PERIOD: MetricSpec = MetricSpec::new(
    "oscillation_period_s",
    MetricKind::Time,
    "mean time between the minima of the oscillations (see `oscillation_count`); no value with fewer than two; of the first \
     flow, if none is named",
    |r, flow, _| r.flow(flow).oscillations.and_then(|o| o.period_s),
)
.with_better(Better::Neither);

/// The fall, over the maximum before, that makes an oscillation: more than one decrease of GCC to 85 %, and more than the noise of
/// a source (5.5 % over 1 s).
const FALL: f64 = 0.3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Oscillations {
    /// Falls with a rise after them.
    pub count: u64,
    /// Their mean fall over the maximum before; 0 without one.
    pub amplitude: f64,
    /// Mean time between their minima, s.
    pub period_s: Option<f64>,
}

/// Returns the oscillations of a flow from `from` to `to`; `None` if no whole second lies between.
pub(super) fn of_flow(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<Oscillations> {
    find(run.rates[flow].sent_in(from, to).map(|bytes| bytes as f64))
}

fn find(rates: impl Iterator<Item = f64>) -> Option<Oscillations> {
    let mut rates = rates.enumerate();
    let (_, mut highest) = rates.next()?;
    // The lowest rate since the maximum, and its second, while the rate is low.
    let mut lowest: Option<(usize, f64)> = None;
    let (mut falls, mut minima) = (0.0, Vec::new());
    for (second, rate) in rates {
        match &mut lowest {
            None if highest > 0.0 && rate <= (1.0 - FALL) * highest => lowest = Some((second, rate)),
            None => highest = highest.max(rate),
            Some((_, low)) if *low <= (1.0 - FALL) * rate => {
                falls += 1.0 - *low / highest;
                minima.extend(lowest.take().map(|(second, _)| second));
                highest = rate;
            }
            Some(low) if rate < low.1 => *low = (second, rate),
            Some(_) => {}
        }
    }
    let count = minima.len() as u64;
    Some(Oscillations {
        count,
        amplitude: if count > 0 { falls / count as f64 } else { 0.0 },
        period_s: (count > 1).then(|| (minima[minima.len() - 1] - minima[0]) as f64 / (count - 1) as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_with_a_rise_after_them_count() {
        let found = |rates: &[f64]| {
            let Oscillations { count, amplitude, period_s } = find(rates.iter().copied()).unwrap();
            (count, (amplitude * 1000.0).round() / 1000.0, period_s)
        };
        assert_eq!(found(&[10.0, 40.0, 100.0, 100.0, 90.0]), (0, 0.0, None), "a rise is none");
        assert_eq!(found(&[100.0, 71.0, 100.0, 71.0]), (0, 0.0, None), "29 % is none");
        assert_eq!(found(&[100.0, 70.0, 60.0, 60.0]), (0, 0.0, None), "a fall alone is none");
        assert_eq!(found(&[100.0, 70.0, 99.0]), (0, 0.0, None), "it rises to less than 70 / 0.7 = 100");
        assert_eq!(found(&[100.0, 70.0, 60.0, 90.0]), (1, 0.4, None));
        // Falls of 40 and 60 %, with minima in seconds 2 and 6.
        assert_eq!(found(&[80.0, 100.0, 60.0, 90.0, 100.0, 50.0, 40.0, 90.0]), (2, 0.5, Some(4.0)));
        assert_eq!(found(&[100.0, 0.0, 50.0]), (1, 1.0, None));
        assert_eq!(found(&[0.0, 0.0, 50.0, 100.0]), (0, 0.0, None), "a late start is none");
        assert_eq!(find(core::iter::empty()), None);
    }
}
