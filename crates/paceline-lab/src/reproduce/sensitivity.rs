// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sensitivity: how many verdicts depend on assumed constants. Each constant is set to both ends of its range, one at a time,
//! on the same seeds.

use super::reproduction::{reports_on_seeds, verdicts};
use super::runs::{RunContext, Seeds};
use crate::judge::Experiment;
use crate::results::{Cell, CellVerdict};
use crate::run::Runner;
use paceline_netsim::records::Label;
use paceline_netsim::world::WorldError;
use paceline_scenario::{Origin, ScenarioError};
use serde::Serialize;

/// The influence of the assumed constants on the verdicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensitivityReport {
    pub constants: Vec<ConstantReport>,
    pub summary: SensitivitySummary,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantReport {
    /// The paper: folder of the experiments.
    pub paper: String,
    pub id: String,
    pub key: String,
    pub value: String,
    pub why: String,
    pub experiments: usize,
    /// The lowest and the highest plausible value.
    pub ends: Vec<ConstantEnd>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantEnd {
    pub value: String,
    /// Number of cells of the experiments that assume the constant.
    pub cells: usize,
    pub changed: usize,
    pub changes: Vec<VerdictChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictChange {
    pub experiment: String,
    pub metric: String,
    pub case: Label,
    pub flow: Option<String>,
    pub window_s: (f64, f64),
    pub claim: Option<String>,
    /// The verdict with the assumed value.
    pub from: CellVerdict,
    /// The verdict with this value.
    pub to: CellVerdict,
    /// The mean with the assumed value.
    pub measured: Option<f64>,
    /// The mean with this value.
    pub measured_then: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SensitivitySummary {
    pub constants: usize,
    pub constants_that_matter: usize,
    pub cells: usize,
    /// Cells whose verdict changes at an end of a constant.
    pub cells_that_change: usize,
}

/// An experiment with one constant at one end of its range.
struct Variant {
    constant: usize,
    end: usize,
    base: usize,
}

/// Repeats every verdict with each constant at each end of its range. `announce` receives the simulated seconds before they
/// are run.
///
/// # Errors
/// A [`ScenarioError`] if a scenario cannot be loaded with such a value; else the error of the world.
pub fn sensitivity(
    runner: &Runner<'_>,
    origins: &[Origin],
    seeds: Option<u64>,
    announce: &dyn Fn(f64),
) -> Result<Result<SensitivityReport, WorldError>, ScenarioError> {
    let load = |origin: &Origin, constants: &[(String, String)]| Experiment::load(origin, constants, runner.registry);
    let mut experiments = origins.iter().map(|o| load(o, &[])).collect::<Result<Vec<_>, _>>()?;
    let mut constants: Vec<ConstantReport> = Vec::new();
    let mut variants: Vec<Variant> = Vec::new();
    for (base, origin) in origins.iter().enumerate() {
        let experiment = experiments[base].clone();
        let paper = experiment.id().rsplit_once('/').map_or("", |(paper, _)| paper).to_owned();
        for constant in experiment.assumed() {
            let index = constants.iter().position(|c| c.paper == paper && c.id == constant.id).unwrap_or_else(|| {
                let end = |value: &String| ConstantEnd { value: value.clone(), cells: 0, changed: 0, changes: vec![] };
                constants.push(ConstantReport {
                    paper: paper.clone(),
                    id: constant.id.clone(),
                    key: constant.key.clone(),
                    value: constant.value.clone(),
                    why: constant.why.clone(),
                    experiments: 0,
                    ends: vec![end(&constant.range.0), end(&constant.range.1)],
                });
                constants.len() - 1
            });
            constants[index].experiments += 1;
            for (end, value) in [&constant.range.0, &constant.range.1].into_iter().enumerate() {
                variants.push(Variant { constant: index, end, base });
                experiments.push(load(origin, &[(constant.id.clone(), value.clone())])?);
            }
        }
    }
    let (written, varied) = experiments.split_at(origins.len());
    let on = seeds.map_or(Seeds::AsNeeded, Seeds::Exactly);
    let context = RunContext { runner, done: None, announce };
    let reports = verdicts(context, written, on).and_then(|(bases, _)| {
        let seeds: Vec<u64> = variants.iter().map(|variant| bases[variant.base].runs_per_case()).collect();
        let changed = reports_on_seeds(context, varied, &seeds)?;
        Ok((bases, changed))
    });
    let (bases, changed) = match reports {
        Ok(reports) => reports,
        Err(error) => return Ok(Err(error)),
    };
    let mut touched: Vec<Vec<bool>> = bases.iter().map(|r| vec![false; r.cells.len()]).collect();
    for (variant, report) in variants.iter().zip(&changed) {
        let base = &bases[variant.base];
        let end = &mut constants[variant.constant].ends[variant.end];
        end.cells += base.cells.len();
        for (index, (before, after)) in base.cells.iter().zip(&report.cells).enumerate() {
            if before.verdict != after.verdict {
                touched[variant.base][index] = true;
                end.changed += 1;
                end.changes.push(verdict_change(&base.id, before, after));
            }
        }
    }
    let summary = SensitivitySummary {
        constants: constants.len(),
        constants_that_matter: constants.iter().filter(|c| c.ends.iter().any(|e| e.changed > 0)).count(),
        cells: touched.iter().map(Vec::len).sum(),
        cells_that_change: touched.iter().flatten().filter(|t| **t).count(),
    };
    Ok(Ok(SensitivityReport { constants, summary }))
}

fn verdict_change(experiment: &str, before: &Cell, after: &Cell) -> VerdictChange {
    VerdictChange {
        experiment: experiment.to_owned(),
        metric: before.metric.clone(),
        case: before.case.clone(),
        flow: before.flow.clone(),
        window_s: before.window_s,
        claim: before.claim.clone(),
        from: before.verdict,
        to: after.verdict,
        measured: before.measured,
        measured_then: after.measured,
    }
}
