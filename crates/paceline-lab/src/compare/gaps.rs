// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times in which a path carries nothing.

use paceline_netsim::plan::Plan;
use paceline_units::{Rate, Time, TimeDelta};

/// Shorter gaps are not counted: jitter buffers and pauses of speech hide them.
const LEAST: TimeDelta = TimeDelta::from_millis(500);
/// Delivery opportunities of recorded traces have this resolution.
const BIN: TimeDelta = TimeDelta::from_millis(1);

/// Returns how often the bottleneck has no capacity for more than half a second during a run.
pub(super) fn gaps(plan: &Plan) -> usize {
    let Some(capacity) = plan.hops.get(plan.bottleneck).and_then(|hop| hop.capacity.as_ref()) else { return 0 };
    let end = Time::ZERO + plan.duration;
    let steps = capacity.steps(end, BIN);
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([end]);
    steps.iter().zip(ends).filter(|((from, rate), to)| *rate == Rate::ZERO && *to - *from > LEAST).count()
}

/// Returns a number of gaps as text, such as `7 gaps above 0.5 s`.
pub(crate) fn count_text(gaps: usize) -> String {
    match gaps {
        0 => "no gap above 0.5 s".to_owned(),
        1 => "1 gap above 0.5 s".to_owned(),
        gaps => format!("{gaps} gaps above 0.5 s"),
    }
}

pub(super) fn sentence(plan: &Plan) -> Option<String> {
    let seconds = plan.duration.as_secs_f64();
    let gaps = gaps(plan);
    (gaps > 0).then(|| format!("The path has {} in {seconds:.0} s.", count_text(gaps)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_scenario::{Changes, Origin, load};

    /// Outages of 600 ms and 500 ms, and one at the end; a lap of the trace has a second without opportunities.
    #[test]
    fn gaps_are_longer_than_half_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.mahimahi");
        std::fs::write(&trace, "10\n200\n1200\n1700\n").unwrap();
        let rates = r#"[["0 s", "2 Mbps"], ["1 s", "0 bps"], ["1.6 s", "1 Mbps"], ["3 s", "0 bps"], ["3.5 s", "1 Mbps"], ["9 s", "0 bps"]]"#;
        let traced = format!("{{ trace = {:?}, end = \"loop\" }}", trace.display().to_string());
        for (capacity, expected) in [("\"1 Mbps\"", 0), (rates, 2), (&traced, 6)] {
            let text = format!(
                "id = \"a\"\ntitle = \"\"\nduration = \"10 s\"\n[path.forward]\ncapacity = {capacity}\n[[flow]]\nid = \"a\"\ncontroller = \"nada\"\n"
            );
            let plan = load(&Origin::from_text("a", text), &Changes::default(), &Registry::standard()).unwrap().plan;
            assert_eq!(gaps(&plan), expected, "{capacity}");
        }
    }
}
