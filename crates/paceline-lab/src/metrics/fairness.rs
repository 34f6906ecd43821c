//! Fairness metrics.

use super::{MetricSpec, RunData};
use paceline_netsim::plan::FlowPlan;
use paceline_records::{MetricKind, jain};
use paceline_scenario::Window;

pub(super) const JAIN: MetricSpec = MetricSpec::new(
    "jain",
    MetricKind::Jain,
    "Jain's index of the rates of the flows that cross the forward bottleneck, in bins of 1 s, mean over bins; of the run, \
     even if a flow is named",
    |r, _, _| r.jain,
);

pub(super) const MEDIA_JAIN: MetricSpec = MetricSpec::new(
    "media_jain",
    MetricKind::Jain,
    "Jain's index as in `jain`, of the media flows alone; of the run, even if a flow is named",
    |r, _, _| r.media_jain,
);

pub(super) const MAX_MIN_RATIO: MetricSpec = MetricSpec::new(
    "max_min_ratio",
    MetricKind::Number,
    "largest over smallest throughput of the media flows; of the run, even if a flow is named",
    |r, _, _| {
        let rates = || r.media().map(|f| f.throughput_bps);
        let (most, least) = (rates().reduce(f64::max)?, rates().reduce(f64::min)?);
        (least > 0.0).then(|| most / least)
    },
);

pub(super) const SHARE: MetricSpec = MetricSpec::new(
    "share",
    MetricKind::Share,
    "throughput of a flow over that of all flows; of the first, if none is named",
    |r, flow, _| r.flow(flow).share,
);

/// Returns Jain's index, averaged over whole seconds, of the flows that `counts` selects and that cross the bottleneck. Only
/// seconds in which all flows of the window are active and receive data count.
pub(super) fn index(run: &RunData<'_>, window: &Window, counts: impl Fn(&FlowPlan) -> bool) -> Option<f64> {
    let plan = &run.scenario.plan;
    let crosses = |f: &FlowPlan| f.route.contains(&plan.bottleneck) && f.start < window.to && f.stop > window.from;
    let living: Vec<usize> =
        (0..plan.flows.len()).filter(|f| counts(&plan.flows[*f]) && crosses(&plan.flows[*f])).collect();
    let from = living.iter().map(|f| plan.flows[*f].start).max()?.max(window.from);
    let to = living.iter().map(|f| plan.flows[*f].stop).min()?.min(window.to);
    let mut bins: Vec<_> = living.iter().map(|f| run.rates[*f].received_in(from, to)).collect();
    let mut indices = Vec::new();
    while let Some(rates) = bins.iter_mut().map(|b| Some(b.next()? as f64)).collect::<Option<Vec<f64>>>() {
        indices.extend(jain(&rates));
    }
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}
