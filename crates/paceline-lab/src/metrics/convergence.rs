//! Convergence: the first second in which a flow receives 90 % of its fair share. That is an equal part of the slowest hop
//! of its route among the flows that cross the hop at that time, or the maximum of its sources where that is less.

use super::{MetricSpec, RunData, accumulators::whole_seconds};
use paceline_records::MetricKind;
use paceline_units::Time;

pub(super) const CONVERGENCE_TIME: MetricSpec = MetricSpec::new(
    "convergence_time_s",
    MetricKind::Time,
    "time until a flow first receives 90 % of its fair share or of its sources' maximum in a second; of the first flow, if \
     none is named",
    |r, flow, _| r.flow(flow).convergence_time_s,
);

/// Returns the time from `from` to the end of that second, s; `None` if there is none until `to`.
pub(super) fn time(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<f64> {
    let most = run.most(flow);
    let mut seconds = whole_seconds(from, to).zip(run.rates[flow].received_in(from, to));
    seconds.find_map(|((a, b), received)| {
        let (hop, volume) = run.slowest(flow, a, b)?;
        let fair = (volume.as_bits() as f64 / run.crossing(hop, a).max(1) as f64).min(most);
        (received as f64 * 8.0 >= 0.9 * fair).then(|| (b - from).as_secs_f64())
    })
}
