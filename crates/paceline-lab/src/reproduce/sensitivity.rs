//! Sensitivity: how many verdicts depend on what was assumed. Every assumed constant is put at both ends of its range, one
//! at a time, on the same seeds.

use super::{Cell, Experiment, ExperimentReport, Measured, Seeds, Verdict, jobs, run_jobs, verdicts};
use crate::label::Label;
use crate::run::Runner;
use crate::scenario::{Origin, Problem};
use crate::world::WorldError;
use serde::Serialize;

/// What depends on which assumption.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensitivityReport {
    /// Every constant that an experiment assumes.
    pub constants: Vec<ConstantReport>,
    /// How much depends on them.
    pub summary: SensitivitySummary,
}

/// One constant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantReport {
    /// Whose it is: the folder of the experiments.
    pub paper: String,
    /// Its name.
    pub id: String,
    /// The key that it stands for.
    pub key: String,
    /// What is assumed.
    pub value: String,
    /// Why.
    pub why: String,
    /// Experiments that assume it.
    pub experiments: usize,
    /// The lowest and the highest value that are plausible.
    pub ends: Vec<ConstantEnd>,
}

/// One end of a constant's range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantEnd {
    /// The value.
    pub value: String,
    /// Cells of the experiments that assume the constant.
    pub cells: usize,
    /// How many of them change their verdict.
    pub changed: usize,
    /// Which ones.
    pub changes: Vec<Flip>,
}

/// A cell that changes its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flip {
    /// Scenario id.
    pub experiment: String,
    /// Metric id.
    pub metric: String,
    /// Case of the experiment.
    pub case: Label,
    /// The flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
    /// Its claim.
    pub claim: Option<String>,
    /// The verdict with what is assumed.
    pub from: Verdict,
    /// The verdict with this value instead.
    pub to: Verdict,
    /// The mean with what is assumed.
    pub measured: Option<f64>,
    /// The mean with this value instead.
    pub measured_then: Option<f64>,
}

/// How much depends on what was assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SensitivitySummary {
    /// Constants that are assumed.
    pub constants: usize,
    /// Constants that change a verdict.
    pub constants_that_matter: usize,
    /// Cells of all experiments.
    pub cells: usize,
    /// Cells whose verdict some end of some constant changes.
    pub cells_that_change: usize,
}

/// One experiment with one constant at one end of its range.
struct Variant {
    /// Which constant.
    constant: usize,
    /// Which end.
    end: usize,
    /// Which experiment.
    base: usize,
}

/// Every verdict again with each constant at each end of its range. `announce` is told of simulated seconds to come.
/// Scenarios that cannot be read with such a value are a [`Problem`].
pub fn sensitivity(
    runner: &Runner<'_>,
    origins: &[Origin],
    seeds: Option<u64>,
    announce: &dyn Fn(f64),
) -> Result<Result<SensitivityReport, WorldError>, Problem> {
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
    let reports = verdicts(runner, written, on, announce).and_then(|bases| {
        let changed = on_the_same_seeds(runner, &bases, &variants, varied, announce)?;
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
                end.changes.push(flip(&base.id, before, after));
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

/// Each variant on exactly the seeds that its base was judged on.
fn on_the_same_seeds(
    runner: &Runner<'_>,
    bases: &[ExperimentReport],
    variants: &[Variant],
    experiments: &[Experiment],
    announce: &dyn Fn(f64),
) -> Result<Vec<ExperimentReport>, WorldError> {
    let runs = |index: usize| bases[variants[index].base].made();
    let all = (0..experiments.len()).flat_map(|index| jobs(experiments, index, 1..=runs(index))).collect();
    let mut measured: Vec<Measured> = experiments.iter().map(Measured::none).collect();
    run_jobs(runner, experiments, all, &mut measured, announce)?;
    Ok(experiments.iter().zip(&measured).map(|(e, m)| e.report(m, runner.world.name())).collect())
}

fn flip(experiment: &str, before: &Cell, after: &Cell) -> Flip {
    Flip {
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
