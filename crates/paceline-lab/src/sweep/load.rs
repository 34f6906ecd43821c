// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads a sweep from the text of its file.

use super::file::{MeasureTable, SweepFile};
use super::{CONTROLLER, REPEATS, Subject, Sum, Sweep, Target, axis};
use crate::metrics::{self, METRICS};
use crate::results::{Axis, Measure};
use paceline::Registry;
use paceline_netsim::records::Label;
use paceline_scenario::{
    Catalogue, Origin, Override, Quantity, Scenario, ScenarioError, Spanned, Window, edit_text, parse, suggestion,
};
use paceline_units::Time;
use std::collections::BTreeMap;

const RESERVED: [&str; 8] = ["job", "address", "subject", "seed", "trace_hash", "point", "sum", "raw_sum"];

impl Sweep {
    /// Loads the sweep of this text.
    ///
    /// # Errors
    /// The text is not a sweep, or the first or last value of an axis is not valid. Other values are checked in their jobs.
    pub fn load(origin: &Origin, registry: &Registry) -> Result<Self, ScenarioError> {
        let file: SweepFile = parse(&origin.name, &origin.text)?;
        if file.measure.is_empty() {
            return Err(origin.error("a sweep needs a measure", "write [[measure]] with name, scenario and metric"));
        }
        for (index, measure) in file.measure.iter().enumerate() {
            let before = file.measure[..index].iter().map(|other| other.name.as_str());
            if before.chain(RESERVED).any(|taken| taken == measure.name) {
                let help = "give each measure a name of its own";
                return Err(origin.error(format!("`{}` is already the name of a column", measure.name), help));
            }
        }
        let repeats = file.repeats.as_ref().map_or(1, |r| *r.get());
        if let Some(place) = file.repeats.as_ref().filter(|r| !REPEATS.contains(r.get())) {
            return Err(origin.error_at(place, "repeats are 1 to 10000", "leave the key out for one"));
        }
        let controllers = file.controllers.as_ref().filter(|names| !names.get().is_empty());
        let mut axes: Vec<Axis> = controllers.iter().map(|names| axis::controllers(names.get())).collect();
        for table in &file.axis {
            axes.push(axis::read(origin, table)?);
        }
        if axes.is_empty() {
            return Err(origin.error("a sweep needs an axis", "write [[axis]] with a key and its values"));
        }
        let misplaced = |(n, axis): (usize, &Axis)| {
            axis.constants().is_some() && !(n + 1 == axes.len() && axes[..n].iter().all(|a| a.keys == [CONTROLLER]))
        };
        if axes.iter().enumerate().any(misplaced) {
            let help = "put that axis last, and other changes into `set` of a [[measure]]";
            return Err(origin.error("constants varied one at a time have no axis beside them but controllers'", help));
        }
        let keys: Vec<&str> = axes.iter().flat_map(|axis| &axis.keys).map(String::as_str).collect();
        if let Some((_, twice)) = keys.iter().enumerate().find(|(n, key)| keys[..*n].contains(key)) {
            return Err(origin.error(format!("`{twice}` is on two axes"), "a key can only be on one axis"));
        }
        let points = axes.iter().try_fold(1_u64, |points, axis| points.checked_mul(axis.count()));
        if points.and_then(|p| p.checked_mul(repeats * file.measure.len() as u64)).is_none() {
            return Err(origin.error("the sweep has too many jobs", "remove an axis"));
        }
        let published = file.published.as_ref().map(|place| published(origin, place, &keys)).transpose()?;
        let sum = file.sum.as_ref().map(|sum| {
            let number = |key: &String| keys.iter().position(|known| known == key);
            let larger_where = sum.larger_where.as_ref().map(|place| {
                let (first, second) = place.get();
                number(first).zip(number(second)).ok_or_else(|| {
                    origin.error_at(
                        place,
                        "`larger_where` names a key of no axis",
                        format!("keys: {}", keys.join(", ")),
                    )
                })
            });
            Ok::<_, ScenarioError>(Sum { normalised: sum.normalised, larger_where: larger_where.transpose()? })
        });
        let sum = sum.transpose()?;
        if let Some(place) = file.refine.as_ref().filter(|r| sum.is_none() || !REPEATS.contains(&r.get().repeats)) {
            let help = "write [sum] normalised = true, and refine = { best = 10, repeats = 5 }";
            return Err(origin.error_at(place, "`refine` needs [sum], and is run on 1 to 10000 seeds", help));
        }
        let refine = file.refine.as_ref().map(|place| *place.get()).filter(|refine| refine.best > 0);

        // Measures of the same scenario, case and settings share their runs.
        let mut subjects: Vec<(&MeasureTable, Subject)> = Vec::new();
        let mut subject_of = Vec::new();
        for measure in &file.measure {
            let index = match subjects.iter().position(|(other, _)| same_runs(other, measure)) {
                Some(index) => index,
                None => {
                    subjects.push((measure, subject(origin, measure)?));
                    subjects.len() - 1
                }
            };
            subject_of.push(index);
        }
        let subjects = subjects.into_iter().map(|(_, subject)| subject).collect();
        let mut sweep = Self {
            id: file.id,
            title: file.title,
            source: file.source,
            repeats,
            axes,
            measures: Vec::new(),
            targets: Vec::new(),
            sum,
            published,
            refine,
            subjects,
            origin: origin.clone(),
        };
        sweep.check_controllers(registry)?;
        let first: Vec<Scenario> =
            (0..sweep.subjects.len()).map(|s| sweep.scenario(0, s, registry)).collect::<Result<_, _>>()?;
        for (table, subject) in file.measure.iter().zip(subject_of) {
            let (measure, target) = measure(origin, table, subject, &first[subject])?;
            sweep.measures.push(measure);
            sweep.targets.push(target);
        }
        for point in sweep.ends() {
            for subject in 0..sweep.subjects.len() {
                sweep.scenario(point, subject, registry)?;
            }
        }
        Ok(sweep)
    }

    /// Loads the sweep of this text with changes to the file, as by `--set`: `axis.0.log.steps=8`.
    pub fn load_with(origin: &Origin, settings: &[Override], registry: &Registry) -> Result<Self, ScenarioError> {
        let text = edit_text(&origin.name, &origin.text, settings)?;
        Self::load(&origin.with_text(text), registry)
    }

    fn check_controllers(&self, registry: &Registry) -> Result<(), ScenarioError> {
        let known: Vec<&str> = registry.iter().map(|e| e.name()).collect();
        for axis in self.axes.iter().filter(|axis| axis.keys == [CONTROLLER]) {
            for name in (0..axis.count()).flat_map(|place| axis.at(place)) {
                if name.as_str().and_then(|name| registry.get(name)).is_none() {
                    let help = suggestion(name.as_str().unwrap_or_default(), &known);
                    return Err(self.origin.error(format!("no controller {name}"), help));
                }
            }
        }
        Ok(())
    }
}

fn same_runs(a: &MeasureTable, b: &MeasureTable) -> bool {
    let case = |m: &MeasureTable| m.case.as_ref().map(|c| c.get().clone());
    let set = |m: &MeasureTable| m.set.iter().map(|(k, v)| (k.clone(), v.0.to_string())).collect::<Vec<_>>();
    a.scenario.get() == b.scenario.get() && case(a) == case(b) && set(a) == set(b)
}

fn subject(origin: &Origin, measure: &MeasureTable) -> Result<Subject, ScenarioError> {
    let scenario = Catalogue.find(measure.scenario.get()).map_err(|problem| {
        let hint = problem.hint().unwrap_or_default().to_owned();
        origin.error_at(&measure.scenario, problem.to_string(), hint)
    })?;
    let case = measure.case.as_ref().map_or_else(Label::default, |c| c.get().clone());
    let set = measure.set.iter().map(|(key, value)| Override::new(key, &value.0)).collect();
    Ok(Subject { scenario: scenario.without_expectations(), case, set })
}

fn published(
    origin: &Origin,
    place: &Spanned<BTreeMap<String, f64>>,
    keys: &[&str],
) -> Result<Vec<f64>, ScenarioError> {
    let at_keys: Option<Vec<f64>> = keys.iter().map(|key| place.get().get(*key).copied()).collect();
    at_keys.filter(|values| values.len() == place.get().len()).ok_or_else(|| {
        origin.error_at(
            place,
            "the published point has a value for each key of the axes, and no others",
            format!("keys: {}", keys.join(", ")),
        )
    })
}

fn measure(
    origin: &Origin,
    table: &MeasureTable,
    subject: usize,
    scenario: &Scenario,
) -> Result<(Measure, Target), ScenarioError> {
    if metrics::find(table.metric.get()).is_none() {
        let known: Vec<&str> = METRICS.iter().map(|m| m.id).collect();
        return Err(origin.unknown(&table.metric, "metric", &known));
    }
    let names: Vec<&str> = scenario.plan.flows.iter().map(|f| f.id.as_str()).collect();
    let find = |place: &Spanned<String>| {
        names.iter().position(|name| name == place.get()).ok_or_else(|| origin.unknown(place, "flow", &names))
    };
    let flow = table.flow.as_ref().map(find).transpose()?;
    let whole = (Time::ZERO, Time::ZERO + scenario.plan.duration);
    let (from, to) = table.window.as_ref().map_or(whole, |w| *w.get());
    if let Some(place) = table.window.as_ref().filter(|_| from >= to || to > whole.1) {
        let help = format!("the run lasts {}", scenario.plan.duration);
        return Err(origin.error_at(place, "a window is [from, to] within the run", help));
    }
    let range = table.range.as_ref().map(|place| *place.get());
    // Equal ends occur in a refined sweep, for a measure with the same value at all points.
    if let Some(place) =
        table.range.as_ref().filter(|_| !range.is_some_and(|(low, high)| low <= high && (high - low).is_finite()))
    {
        let help = "write range = [0, 1]";
        return Err(origin.error_at(
            place,
            "a range goes from its lower end, which becomes 0, to its upper end, which becomes 1",
            help,
        ));
    }
    let target = Target {
        subject,
        quantity: Quantity::new(table.metric.get().clone(), flow, Window { from, to }),
        whole: table.window.is_none(),
    };
    let measure = Measure {
        name: table.name.clone(),
        scenario: table.scenario.get().clone(),
        case: table.case.as_ref().map_or_else(Label::default, |c| c.get().clone()),
        metric: table.metric.get().clone(),
        flow: table.flow.as_ref().map(|f| f.get().clone()),
        published: table.published,
        range,
    };
    Ok((measure, target))
}
