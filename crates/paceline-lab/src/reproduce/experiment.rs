//! An experiment: every case of a scenario, each as written, under the null sender, and under what is said to move its
//! values.

use super::null_sender;
use crate::plan::{Constant, Plan};
use crate::scenario::{Changes, Origin, Problem, load_cases};
use paceline::Registry;
use std::collections::{BTreeMap, BTreeSet};

/// One experiment: every case of it, each as written and under the null sender.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its cases; one, without a label, where it has none.
    pub cases: Vec<Plan>,
    /// What there is to run under the null sender; nothing where it is not asked for. Cases that only differ in their
    /// controller are one run there.
    pub(super) nulls: Vec<Plan>,
    /// Which of these each case is.
    pub(super) null_of: Vec<usize>,
    /// The cases under changes that are said to move a value into tolerance, by those changes.
    pub(super) changed: BTreeMap<Vec<String>, Vec<Plan>>,
}

impl Experiment {
    /// The experiment of a scenario, with other values of some assumed constants.
    pub fn load(origin: &Origin, constants: &[(String, String)], registry: &Registry) -> Result<Self, Problem> {
        Self::load_changed(origin, &Changes { constants: constants.to_vec(), ..Changes::default() }, registry)
    }

    /// That of a scenario under these changes, such as every flow under one controller.
    pub fn load_changed(origin: &Origin, changes: &Changes, registry: &Registry) -> Result<Self, Problem> {
        Ok(Self::of(load_cases(origin, changes, registry)?))
    }

    /// With every media flow under this controller, or the scenario's own; none where its cases already compare
    /// controllers.
    pub fn under(origin: &Origin, controller: Option<&str>, registry: &Registry) -> Result<Option<Self>, Problem> {
        let own = load_cases(origin, &Changes::default(), registry)?;
        let controls = |plan: &Plan| plan.flows.iter().map(|f| f.control().to_owned()).collect::<Vec<_>>();
        match controller {
            None => Ok(Some(Self::of(own))),
            Some(_) if own.iter().any(|plan| controls(plan) != controls(&own[0])) => Ok(None),
            Some(name) => {
                let changes = Changes { controller: Some(name.to_owned()), ..Changes::default() };
                Ok(Some(Self::of(load_cases(origin, &changes, registry)?)))
            }
        }
    }

    pub(super) fn of(cases: Vec<Plan>) -> Self {
        Self { cases, nulls: Vec::new(), null_of: Vec::new(), changed: BTreeMap::new() }
    }

    /// Also under every change that is said to move a value into tolerance, where the value is not reproduced.
    pub fn with_changes(mut self, origin: &Origin, registry: &Registry) -> Result<Self, Problem> {
        let remarks = self
            .cases
            .iter()
            .flat_map(|plan| plan.expects.iter().map(|e| &e.remark).chain(plan.asserts.iter().map(|a| &a.remark)));
        let wanted: BTreeSet<&Vec<String>> = remarks.map(|r| &r.moved_by).filter(|m| !m.is_empty()).collect();
        for moved_by in wanted {
            let settings = moved_by.iter().map(|text| text.parse().expect("it was resolved")).collect();
            let changes = Changes { settings, ..Changes::default() };
            self.changed.insert(moved_by.clone(), load_cases(origin, &changes, registry)?);
        }
        Ok(self)
    }

    /// Also under the null sender, if there is media for it to send.
    pub fn beside_null_sender(mut self) -> Self {
        if self.cases.iter().flat_map(|c| &c.flows).all(|f| f.media().is_none()) {
            return self;
        }
        let mut seen: Vec<String> = Vec::new();
        for plan in &self.cases {
            let null = null_sender(plan);
            let what = format!("{:?}", (&null.duration, &null.hops, &null.flows, &null.measure));
            let index = seen.iter().position(|other| *other == what).unwrap_or_else(|| {
                seen.push(what);
                self.nulls.push(null);
                seen.len() - 1
            });
            self.null_of.push(index);
            // It is asked for all that any of its cases is asked for.
            let shared = &mut self.nulls[index];
            for quantity in plan.quantities() {
                if !shared.quantities().any(|other| other == quantity) {
                    let key = shared.references.keys().last().map_or(0, |key| key + 1);
                    shared.references.insert(key, quantity.clone());
                }
            }
        }
        self
    }

    /// Scenario id.
    pub fn id(&self) -> &str {
        &self.cases[0].id
    }

    /// Whether there is anything to give a verdict on.
    pub fn says_something(&self) -> bool {
        self.cases.iter().any(|c| !c.expects.is_empty() || !c.asserts.is_empty())
    }

    /// The constants that any of its cases assumes.
    pub(super) fn assumed(&self) -> impl Iterator<Item = &Constant> {
        let applied = |id: &str| self.cases.iter().flat_map(|c| &c.constants).any(|c| c.id == id && c.applied);
        self.cases[0].constants.iter().filter(move |c| applied(&c.id))
    }

    pub(super) fn plans(&self, null: bool) -> &[Plan] {
        if null { &self.nulls } else { &self.cases }
    }
}
