// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading a scenario for runs: published values are kept only where they apply.

use crate::registries;
use paceline::Registry;
use paceline_scenario::{Changes, Origin, Scenario, ScenarioError};

/// Loads a scenario for runs. It has no published values if they do not apply: with changes, or under another controller than its
/// own. A note says why.
pub fn load(origin: &Origin, changes: &Changes, controllers: &Registry) -> Result<Scenario, ScenarioError> {
    let load = |changes: &Changes| paceline_scenario::load(origin, changes, registries(controllers));
    let mut scenario = load(changes)?;
    if scenario.expects.is_empty() {
        return Ok(scenario);
    }
    let mut why: Vec<String> = Vec::new();
    if let Some(controller) = &changes.controller {
        let names = |scenario: &Scenario| -> Vec<String> {
            scenario.plan.flows.iter().map(|flow| flow.control().to_owned()).collect()
        };
        // The changes may set parameters that only this controller has.
        let is_own =
            load(&Changes { controller: None, ..changes.clone() }).is_ok_and(|own| names(&own) == names(&scenario));
        why.extend((!is_own).then(|| format!("under {controller}")));
    }
    if !changes.settings.is_empty() {
        let settings: Vec<String> = changes.settings.iter().map(ToString::to_string).collect();
        why.push(format!("with {}", settings.join(", ")));
    }
    if !why.is_empty() {
        scenario.remove_published(&why.join(" and "));
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_scenario::Catalogue;

    #[test]
    fn published_values_are_of_the_scenario_as_written() {
        let (controllers, origin) = (Registry::standard(), Catalogue.find("mmsys16/table1").unwrap());
        let setting = || vec!["duration=100s".parse().unwrap()];
        let controller = |name: &str| Some(name.to_owned());
        for (changes, kept, note) in [
            (Changes::default(), true, ""),
            (Changes { controller: controller("gcc-2016"), ..Changes::default() }, true, ""),
            (Changes { controller: controller("nada"), ..Changes::default() }, false, "not under nada"),
            (Changes { settings: setting(), ..Changes::default() }, false, "not with duration=100s"),
            (
                Changes {
                    settings: vec!["flow.video.config.kappa=0.5".parse().unwrap()],
                    controller: controller("nada"),
                    ..Changes::default()
                },
                false,
                "not under nada and with flow.video.config.kappa=0.5",
            ),
            (
                Changes { settings: setting(), controller: controller("nada"), ..Changes::default() },
                false,
                "not under nada and with duration=100s",
            ),
        ] {
            let scenario = load(&origin, &changes, &controllers).unwrap();
            assert_eq!(!scenario.expects.is_empty(), kept, "{changes:?}");
            let notes: Vec<_> = scenario.notes.iter().filter(|text| text.starts_with("published values are")).collect();
            assert_eq!((notes.len(), notes.iter().all(|text| text.ends_with(note))), (usize::from(!kept), true));
            assert!(!scenario.asserts.is_empty(), "bounds remain");
        }
    }
}
