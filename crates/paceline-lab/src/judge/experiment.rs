// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment: every case of a scenario as written, with the null sender, and with changes that should reproduce its
//! values.

use super::null_sender::null_sender;
use crate::registries;
use paceline::Registry;
use paceline_scenario::{Changes, Constant, Origin, Override, Scenario, ScenarioError, load, load_cases};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its cases; a single one without a label if the scenario has none.
    pub cases: Vec<Scenario>,
    /// The scenarios with the null sender, if it is wanted. Cases that differ only in the controller share one.
    pub(crate) nulls: Vec<Scenario>,
    /// For each case, its index in `nulls`.
    pub(crate) null_of: Vec<usize>,
    /// The cases with the changes that should move a value into tolerance, by these changes.
    pub(crate) changed: BTreeMap<Vec<String>, Vec<Scenario>>,
}

impl Experiment {
    /// Loads the experiment of a scenario, with other values of some assumed constants.
    pub fn load(origin: &Origin, constants: &[(String, String)], registry: &Registry) -> Result<Self, ScenarioError> {
        Self::load_changed(origin, &Changes { constants: constants.to_vec(), ..Changes::default() }, registry)
    }

    pub fn load_changed(origin: &Origin, changes: &Changes, registry: &Registry) -> Result<Self, ScenarioError> {
        Ok(Self::of(load_cases(origin, changes, registries(registry))?))
    }

    /// Loads the experiment with every media flow under this controller, or that of the scenario. Returns `None` if its cases
    /// already compare controllers.
    pub fn load_under(
        origin: &Origin,
        controller: Option<&str>,
        registry: &Registry,
    ) -> Result<Option<Self>, ScenarioError> {
        let own = Self::load(origin, &[], registry)?;
        let controls =
            |scenario: &Scenario| scenario.plan.flows.iter().map(|f| f.control().to_owned()).collect::<Vec<_>>();
        let Some(name) = controller else { return Ok(Some(own)) };
        if own.cases.iter().any(|scenario| controls(scenario) != controls(&own.cases[0])) {
            return Ok(None);
        }
        let changes = Changes { controller: Some(name.to_owned()), ..Changes::default() };
        Self::load_changed(origin, &changes, registry).map(Some)
    }

    pub(crate) fn of(cases: Vec<Scenario>) -> Self {
        Self { cases, nulls: Vec::new(), null_of: Vec::new(), changed: BTreeMap::new() }
    }

    /// Adds the cases with every change that should move a value into tolerance. They are run if the value is not reproduced.
    pub fn with_changes(mut self, origin: &Origin, registry: &Registry) -> Result<Self, ScenarioError> {
        let wanted: BTreeSet<&Vec<String>> = self.cases.iter().flat_map(changes_of).collect();
        let mut changed = BTreeMap::new();
        for by in wanted {
            let settings: Vec<Override> = by.iter().map(|text| text.parse().expect("it was resolved")).collect();
            let mut cases = Vec::new();
            for scenario in &self.cases {
                let case = scenario.plan.case.clone();
                let changes = Changes { case, settings: settings.clone(), ..Changes::default() };
                cases.push(match load(origin, &changes, registries(registry)) {
                    // Another case may have a controller without this key.
                    Err(_) if !changes_of(scenario).any(|other| other == by) => scenario.clone(),
                    loaded => loaded?,
                });
            }
            changed.insert(by.clone(), cases);
        }
        self.changed = changed;
        Ok(self)
    }

    /// Adds the cases with the null sender, if there are media flows.
    pub fn with_null_sender(mut self) -> Self {
        if self.cases.iter().flat_map(|c| &c.plan.flows).all(|f| f.media().is_none()) {
            return self;
        }
        let mut seen: Vec<String> = Vec::new();
        for scenario in &self.cases {
            let null = null_sender(scenario);
            let what = format!("{:?}", (&null.plan.duration, &null.plan.hops, &null.plan.flows, &null.measure));
            let index = seen.iter().position(|other| *other == what).unwrap_or_else(|| {
                seen.push(what);
                self.nulls.push(null);
                seen.len() - 1
            });
            self.null_of.push(index);
            // The shared scenario needs the quantities of all its cases.
            let shared = &mut self.nulls[index];
            for quantity in scenario.quantities() {
                if !shared.quantities().any(|other| other == quantity) {
                    let key = shared.references.keys().last().map_or(0, |key| key + 1);
                    shared.references.insert(key, quantity.clone());
                }
            }
        }
        self
    }

    pub fn id(&self) -> &str {
        &self.cases[0].plan.id
    }

    pub fn has_expectations(&self) -> bool {
        self.cases.iter().any(|c| !c.expects.is_empty() || !c.asserts.is_empty())
    }

    /// Returns the constants that any case assumes.
    pub(crate) fn assumed(&self) -> impl Iterator<Item = &Constant> {
        let applied = |id: &str| self.cases.iter().flat_map(|c| &c.constants).any(|c| c.id == id && c.applied);
        self.cases[0].constants.iter().filter(move |c| applied(&c.id))
    }

    pub(crate) fn scenarios(&self, null: bool) -> &[Scenario] {
        if null { &self.nulls } else { &self.cases }
    }
}

/// Returns the changes that should move values of a case into tolerance.
fn changes_of(scenario: &Scenario) -> impl Iterator<Item = &Vec<String>> {
    let expects = scenario.expects.iter().map(|e| &e.remark);
    let remarks = expects.chain(scenario.asserts.iter().map(|a| &a.remark));
    remarks.map(|remark| &remark.reproduced_with).filter(|by| !by.is_empty())
}
