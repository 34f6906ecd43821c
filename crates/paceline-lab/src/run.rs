//! Runs: one or many of a plan, on as many threads as there are, and their summary.

use crate::label::Label;
use crate::machine::Machine;
use crate::metrics::{Collector, METRICS, WindowResult};
use crate::plan::{FlowKind, Keep, Plan, Quantity, Reference, Window};
use crate::rows::{RowSink, RunHeader};
use crate::stats::{Statistic, Summary};
use crate::world::{Outcome, World, WorldError};
use paceline::Registry;
use paceline_flow::tcp::TcpSender;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run, as `run --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// World that it ran in.
    pub world: String,
    /// Its seed.
    pub seed: u64,
    /// How long it lasted, in the world's time.
    pub duration_s: f64,
    /// Hash over every decision of links and endpoints, 16 hexadecimal digits.
    pub trace_hash: String,
    /// How long it took, in real time.
    pub wall_s: f64,
    /// Events handled.
    pub events: u64,
    /// The machine that it ran on; none in virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// What it came to.
    #[serde(flatten)]
    pub whole: WindowResult,
    /// What each of the plan's windows came to, in the order of [`windows`].
    #[serde(skip)]
    pub windows: Vec<WindowResult>,
    /// Bytes that each flow received in each second.
    #[serde(skip)]
    pub seconds: Vec<Vec<u64>>,
    /// What the world said.
    #[serde(skip)]
    pub outcome: Outcome,
}

/// Runs of one plan, as `run --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunsResult {
    /// Scenario id.
    pub scenario: String,
    /// Which case of it; empty: none, or the scenario as written.
    pub case: Label,
    /// Every run, by seed.
    pub runs: Vec<RunResult>,
    /// Every metric of the run as a whole: mean, spread and interval over the runs.
    pub summary: BTreeMap<String, Summary>,
    /// Every bound of the scenario, and whether the mean over the runs that count keeps it.
    pub assertions: Vec<Assertion>,
    /// Every published value beside the measured one.
    pub expectations: Vec<Expectation>,
    /// What a reader should know: traces taken, what headers count, what limits follow, how many runs count.
    pub notes: Vec<String>,
}

/// A bound and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// Its name.
    pub id: String,
    /// Metric.
    pub metric: String,
    /// Flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
    /// Whether it is a ratio to a reference.
    pub ratio: bool,
    /// Which number of several runs is bounded.
    #[serde(default)]
    pub runs: Statistic,
    /// The lowest and the highest that it may be.
    #[serde(deserialize_with = "crate::json::bounds")]
    pub bounds: (f64, f64),
    /// That number, if the metric had a value in every run.
    pub measured: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
}

/// A published value and the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// Metric.
    pub metric: String,
    /// Flow it is taken of.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: (f64, f64),
    /// Whether it is a ratio to a reference.
    pub ratio: bool,
    /// What was published.
    pub published: f64,
    /// What was measured.
    pub measured: Option<Summary>,
}

/// Everything that makes runs besides their plan.
pub struct Runner<'a> {
    /// Where they run.
    pub world: &'a dyn World,
    /// The controllers that they may use.
    pub registry: &'a Registry,
    /// Seconds that have passed, on any clock: this crate reads none itself.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
    /// Called as each second of each run is over.
    pub ticked: &'a (dyn Fn() + Sync),
}

/// A run that the machine disturbed is made again, so often in all.
pub const ATTEMPTS: u32 = 3;

/// The spans that a plan's published values and bounds ask for, each once.
pub fn windows(plan: &Plan) -> Vec<Window> {
    let mut windows: Vec<Window> = plan.quantities().map(|q| q.window).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}

/// What a world's rows are about, for sinks that write names.
pub fn header(plan: &Plan, registry: &Registry, world: &str, seed: u64) -> RunHeader {
    let names = |specs: &[paceline::SignalSpec]| -> Vec<(String, String)> {
        specs.iter().map(|s| (s.name.to_owned(), s.unit.to_owned())).collect()
    };
    RunHeader {
        scenario: plan.id.clone(),
        world: world.to_owned(),
        seed,
        hops: plan.hops.iter().map(|h| h.id.clone()).collect(),
        flows: plan.flows.iter().map(|f| f.id.clone()).collect(),
        controllers: plan.flows.iter().map(|f| Some(f.control().to_owned())).collect(),
        signals: plan
            .flows
            .iter()
            .map(|f| match &f.kind {
                FlowKind::Tcp(_) => [names(TcpSender::SIGNALS), Vec::new()],
                FlowKind::Media(media) => registry.get(&media.controller.name).map_or(Default::default(), |e| {
                    let (send, receive) = e.signals();
                    [names(send), names(receive)]
                }),
            })
            .collect(),
    }
}

impl Runner<'_> {
    /// One run; rows also go to `sink`.
    pub fn run(&self, plan: &Plan, seed: u64, sink: Option<&mut dyn RowSink>) -> Result<RunResult, WorldError> {
        let began = (self.clock)();
        let windows = windows(plan);
        let collector = Collector::new(plan, &windows, self.ticked);
        self.collect(plan, seed, collector, sink, began)
    }

    /// One run of which only what the plan asks for is known: its windows have values, the run as a whole has none.
    pub(crate) fn run_asked(&self, plan: &Plan, seed: u64) -> Result<RunResult, WorldError> {
        let began = (self.clock)();
        self.collect(plan, seed, Collector::of_asked(plan, &windows(plan), self.ticked), None, began)
    }

    fn collect(
        &self,
        plan: &Plan,
        seed: u64,
        mut collector: Collector<'_>,
        sink: Option<&mut dyn RowSink>,
        began: f64,
    ) -> Result<RunResult, WorldError> {
        let outcome = match sink {
            None => self.world.run(plan, self.registry, seed, &mut collector)?,
            Some(sink) => self.world.run(plan, self.registry, seed, &mut (&mut collector, sink))?,
        };
        let (results, seconds) = collector.finish();
        let mut results = results.into_iter();
        let whole = results.next().expect("the whole run is always measured");
        Ok(RunResult {
            world: self.world.name().to_owned(),
            seed,
            duration_s: plan.duration.as_secs_f64(),
            trace_hash: format!("{:016x}", outcome.trace_hash),
            wall_s: (self.clock)() - began,
            events: outcome.events,
            machine: outcome.machine.clone(),
            whole,
            windows: results.collect(),
            seconds,
            outcome,
        })
    }

    /// Does `make` until its run was not disturbed by the machine, or the last attempt is over; in virtual time, once.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn undisturbed<T, E>(&self, mut make: impl FnMut() -> Result<(RunResult, T), E>) -> Result<(RunResult, T), E> {
        let mut attempt = 1;
        loop {
            let (mut result, made) = make()?;
            let Some(machine) = &mut result.machine else { return Ok((result, made)) };
            machine.attempts = attempt;
            if machine.disturbed.is_none() || attempt == ATTEMPTS {
                return Ok((result, made));
            }
            attempt += 1;
        }
    }

    /// Runs with these seeds, in parallel; the result does not depend on how many threads there are.
    pub fn run_all(&self, plan: &Plan, seeds: &[u64]) -> Result<RunsResult, WorldError> {
        let once = |seed: &u64| Ok(self.undisturbed(|| Ok((self.run(plan, *seed, None)?, ())))?.0);
        let all = || seeds.par_iter().map(once).collect::<Result<Vec<_>, _>>();
        Ok(summarise(plan, self.on_threads(all)?))
    }

    /// Does what makes runs in parallel, on as many threads as this world may use: all there are, or one in real time.
    pub(crate) fn on_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self.world.real_time() {
            false => work(),
            true => {
                let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                one.expect("one thread is to be had").install(work)
            }
        }
    }
}

/// Runs of one plan to their summary.
pub fn summarise(plan: &Plan, runs: Vec<RunResult>) -> RunsResult {
    let each: Vec<_> = runs.iter().map(|r| r.metrics(plan)).collect();
    let summary = METRICS
        .iter()
        .filter_map(|m| {
            let values = each.iter().map(|metrics| metrics.get(m.id).copied()).collect::<Option<Vec<_>>>()?;
            Some((m.id.to_owned(), Summary::of(&values)?))
        })
        .collect();
    let windows = windows(plan);
    let flow_name = |flow: Option<usize>| flow.map(|f| plan.flows[f].id.clone());
    let counting: Vec<&RunResult> = runs.iter().filter(|run| plan.counts(|of| run.value(plan, &windows, of))).collect();
    let too_few = Keep::too_few(counting.len(), runs.len());
    let assertions = plan
        .asserts
        .iter()
        .filter(|a| !matches!(a.over, Some(Reference::Elsewhere { .. })))
        .map(|a| {
            let number = measured(plan, &windows, &counting, &a.of, a.over.as_ref(), a.runs).map(|s| s.mean);
            Assertion {
                id: a.id.clone(),
                metric: a.of.metric.clone(),
                flow: flow_name(a.of.flow),
                window_s: a.of.window.seconds(),
                ratio: a.over.is_some(),
                runs: a.runs,
                bounds: a.bounds,
                measured: number,
                holds: !too_few && number.is_some_and(|m| a.bounds.0 <= m && m <= a.bounds.1),
            }
        })
        .collect();
    let expectations = plan
        .expects
        .iter()
        .filter(|e| !matches!(e.over, Some(Reference::Elsewhere { .. })))
        .map(|e| Expectation {
            metric: e.of.metric.clone(),
            flow: flow_name(e.of.flow),
            window_s: e.of.window.seconds(),
            ratio: e.over.is_some(),
            published: e.published,
            measured: measured(plan, &windows, &counting, &e.of, e.over.as_ref(), Statistic::Mean),
        })
        .collect();
    let kept = plan.keep.as_ref().map(|keep| {
        let told = keep.told(counting.len(), runs.len());
        match too_few {
            false => format!("runs: {told}; bounds and published values are of these, all else is of every run"),
            true => format!("runs: {told}; these are fewer than half and show nothing, so no bound holds"),
        }
    });
    let (scenario, case) = (plan.id.clone(), plan.case.clone());
    let notes = plan.notes.iter().cloned().chain(kept).collect();
    RunsResult { scenario, case, runs, summary, assertions, expectations, notes }
}

/// A quantity, or its ratio to another of the same run, over these runs; none if any of them has no value.
fn measured(
    plan: &Plan,
    windows: &[Window],
    runs: &[&RunResult],
    of: &Quantity,
    over: Option<&Reference>,
    statistic: Statistic,
) -> Option<Summary> {
    let value = |run: &&RunResult| {
        let value = run.value(plan, windows, of)?;
        match over {
            None => Some(value),
            Some(Reference::Here(over)) => ratio(value, run.value(plan, windows, over)?),
            Some(Reference::Elsewhere { .. }) => None,
        }
    };
    statistic.of(&runs.iter().map(value).collect::<Option<Vec<_>>>()?)
}

/// One number over another, if that is a number.
pub(crate) fn ratio(value: f64, over: f64) -> Option<f64> {
    Some(value / over).filter(|ratio| ratio.is_finite())
}

impl RunResult {
    /// Every metric of the run as a whole that has a value, by id; `plan` is what ran.
    pub fn metrics(&self, plan: &Plan) -> BTreeMap<String, f64> {
        let value = |m: &crate::metrics::MetricSpec| (m.value)(&self.whole, None, &plan.measure);
        METRICS.iter().filter_map(|m| Some((m.id.to_owned(), value(m)?))).collect()
    }

    /// What a quantity came to in this run of `plan`, whose [`windows`] these are.
    pub(crate) fn value(&self, plan: &Plan, windows: &[Window], quantity: &Quantity) -> Option<f64> {
        let index = windows.iter().position(|w| *w == quantity.window)?;
        (crate::metrics::find(&quantity.metric)?.value)(&self.windows[index], quantity.flow, &plan.measure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Verdict, cells_of};
    use crate::scenario::{Changes, Origin, load};
    use crate::sim::Simulator;
    use paceline_units::Time;

    const KEEPING: &str = r#"
id = "test/keep"
title = "A rate that frames of random size move"
duration = "5s"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[measure]
keep = { metric = "utilization", at_least = 0 }
[[assert]]
id = "some"
metric = "utilization"
bounds = [0, 1]
[[expect]]
metric = "utilization"
published = 0.5
"#;

    /// Of 4 runs as many count as have come to what is asked; both judges say the same of them.
    #[test]
    fn runs_that_count_are_judged_as_a_reproduction_judges_them() {
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let plan = load(&Origin::from_text("keep.toml", KEEPING), &Changes::default(), &registry).unwrap();
        let mut by_value = runner.run_all(&plan, &[1, 2, 3, 4]).unwrap().runs;
        let value = |run: &RunResult| run.metrics(&plan)["utilization"];
        by_value.sort_by(|a, b| value(b).total_cmp(&value(a)));
        assert!(value(&by_value[0]) > value(&by_value[3]), "the seeds differ");
        for kept in 1..=4 {
            let mut plan = plan.clone();
            plan.keep.as_mut().unwrap().at_least = value(&by_value[kept - 1]);
            let result = summarise(&plan, by_value.clone());
            let mean = by_value[..kept].iter().map(value).sum::<f64>() / kept as f64;
            let (bound, expectation) = (&result.assertions[0], &result.expectations[0]);
            assert!((bound.measured.unwrap() - mean).abs() < 1e-12, "{bound:?}");
            assert_eq!((bound.holds, expectation.measured.unwrap().n), (kept >= 2, kept));
            assert_eq!(result.summary["utilization"].n, 4, "what is not judged is of every run");
            let note = result.notes.last().unwrap();
            assert!(note.starts_with(&format!("runs: kept {kept} of 4, those with utilization of ")), "{note}");
            assert_eq!(note.contains("show nothing"), kept < 2, "{note}");
            let cells = cells_of(&plan, &by_value);
            let cell = cells.iter().find(|cell| cell.bounds.is_some()).unwrap();
            assert_eq!((cell.n, cell.left_out), (kept, Some(4 - kept)));
            assert_eq!(cell.verdict == Verdict::Reproduced, bound.holds, "{cell:?}");
        }
    }

    /// Leaving out what is not asked for moves no value that is, of any metric, and no trace.
    #[test]
    fn what_is_asked_for_is_what_a_whole_run_says() {
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let plan = load(&Origin::from_text("keep.toml", KEEPING), &Changes::default(), &registry).unwrap();
        let mut with_values = 0;
        for metric in METRICS {
            let mut plan = plan.clone();
            (plan.expects, plan.asserts, plan.keep) = (Vec::new(), Vec::new(), None);
            for (key, (flow, from, to)) in [(None, 0, 5), (Some(0), 1, 4)].into_iter().enumerate() {
                let window = Window { from: Time::from_secs(from), to: Time::from_secs(to) };
                plan.references.insert(key, Quantity { metric: metric.id.to_owned(), flow, window });
            }
            let (whole, asked) = (runner.run(&plan, 3, None).unwrap(), runner.run_asked(&plan, 3).unwrap());
            let values = |run: &RunResult| -> Vec<Option<f64>> {
                plan.references.values().map(|of| run.value(&plan, &windows(&plan), of)).collect()
            };
            assert_eq!(values(&whole), values(&asked), "{}", metric.id);
            assert_eq!(whole.trace_hash, asked.trace_hash);
            with_values += values(&whole).iter().flatten().count();
        }
        assert!(with_values > METRICS.len(), "{with_values} values");
    }

    #[test]
    fn a_disturbed_run_is_made_again_and_in_the_end_believed() {
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let plan = load(&Origin::from_text("keep.toml", KEEPING), &Changes::default(), &registry).unwrap();
        let once = runner.run(&plan, 1, None).unwrap();
        // The first so many are disturbed; how often it is made, and what is said then.
        for (disturbed, made, is_marked) in [(0, 1, false), (1, 2, false), (2, 3, false), (3, 3, true), (9, 3, true)] {
            let mut count = 0;
            let make = || {
                count += 1;
                let why = (count <= disturbed).then(|| "busy".to_owned());
                let late = crate::machine::Percentiles::default();
                let machine =
                    Machine { idle: 0.5, others: 0.0, late_us: late, wake_us: late, disturbed: why, attempts: 1 };
                Ok::<_, WorldError>((RunResult { machine: Some(machine), ..once.clone() }, count))
            };
            let (result, last) = runner.undisturbed(make).unwrap();
            let machine = result.machine.unwrap();
            assert_eq!((last, machine.attempts, machine.disturbed.is_some()), (made, made, is_marked));
        }
        let mut count = 0;
        let make = || {
            count += 1;
            Ok::<_, WorldError>((once.clone(), ()))
        };
        assert!(runner.undisturbed(make).unwrap().0.machine.is_none());
        assert_eq!(count, 1, "in virtual time, once");
    }

    #[test]
    fn a_plan_that_keeps_all_says_nothing_of_it() {
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let text = KEEPING.replace("keep = {", "# {");
        let plan = load(&Origin::from_text("all.toml", text), &Changes::default(), &registry).unwrap();
        let result = runner.run_all(&plan, &[1, 2]).unwrap();
        assert_eq!((&result.notes, result.assertions[0].holds), (&plan.notes, true));
    }
}
