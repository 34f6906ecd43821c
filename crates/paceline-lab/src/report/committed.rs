// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdicts on the papers that were committed with this version: of the mean over all runs, for a reader who has one run.

use crate::results::Cell;
use paceline_netsim::records::Label;
use paceline_scenario::Scenario;

/// The tables that `cargo xtask scoreboard papers` writes: test, controller, quantity, claim, verdict, null sender, trace hash.
const PAPERS: [&str; 5] = [
    include_str!("../../../../scoreboard/papers/fhmn13.txt"),
    include_str!("../../../../scoreboard/papers/med16.txt"),
    include_str!("../../../../scoreboard/papers/mmsys16.txt"),
    include_str!("../../../../scoreboard/papers/rmcat-ns3.txt"),
    include_str!("../../../../scoreboard/papers/uottawa15.txt"),
];

/// Returns the committed verdict on a published value of a scenario of the catalogue; `None` if there is none, or if several differ.
pub fn verdict(scenario: &Scenario, cell: &Cell) -> Option<&'static str> {
    let [test, what] = [with_case(&scenario.plan.id, &cell.case), quantity(cell)];
    if !scenario.is_shipped {
        return None;
    }
    let mut found = PAPERS.iter().flat_map(|table| table.lines()).filter_map(|line| {
        let [of, controller, quantity, "-", verdict, ..] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        (of == test && controller == cell.controller && quantity == what).then_some(verdict)
    });
    let verdict = found.next()?;
    found.all(|other| other == verdict).then_some(verdict)
}

fn with_case(text: &str, case: &Label) -> String {
    case.pairs().fold(text.to_owned(), |text, (name, value)| format!("{text} {name}={value}"))
}

/// Returns what a cell measures as the tables name it.
fn quantity(cell: &Cell) -> String {
    let place = |metric: &str, flow: &Option<String>, (from, to): (f64, f64)| {
        let flow = flow.as_ref().map_or_else(String::new, |flow| format!(" of {flow}"));
        format!("{metric}{flow} {from} to {to} s")
    };
    let over = cell.over.as_ref().map_or_else(String::new, |over| {
        format!(" over {}", with_case(&place(&over.metric, &over.flow, over.window_s), &over.case))
    });
    let statistic = match serde_json::to_value(cell.runs).unwrap_or_default().as_str() {
        None | Some("mean") => String::new(),
        Some(name) => format!(" ({name})"),
    };
    place(&cell.metric, &cell.flow, cell.window_s) + &statistic + &over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Runner;
    use paceline::Registry;
    use paceline_scenario::{Catalogue, Changes, load};

    /// The tables name quantities as this module does.
    #[test]
    fn published_values_of_the_papers_have_a_verdict() {
        let registry = Registry::standard();
        let (mut found, mut missing) = (0, Vec::new());
        for name in ["fhmn13/step", "mmsys16/table1", "rmcat-ns3/table2", "med16/table3", "uottawa15/case1"] {
            let origin = Catalogue.find(name).unwrap();
            let scenario = load(&origin, &Changes::default(), crate::registries(&registry)).unwrap();
            let run = Runner::simulator(&registry).run_all(&scenario, &[1]).unwrap();
            for cell in crate::judge::cells_of(&scenario, &run.runs).iter().filter(|cell| cell.published.is_some()) {
                match verdict(&scenario, cell) {
                    Some("reproduced" | "direction" | "not") => found += 1,
                    other => missing.push((name, quantity(cell), other)),
                }
                let copy = Scenario { is_shipped: false, ..scenario.clone() };
                assert_eq!(verdict(&copy, cell), None, "a copy may have other keys");
                let other = Cell { controller: "other".into(), ..cell.clone() };
                assert_eq!(verdict(&scenario, &other), None);
            }
        }
        assert!(found >= 8 && missing.is_empty(), "{found} {missing:?}");
    }
}
