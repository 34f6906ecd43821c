//! How far two worlds lie apart on one plan: the same seeds in each, compared seed by seed.
//!
//! ```text
//! run JSON with `waiting` ─▶ GapRun ─┬─ of two worlds ─▶ Gap: means, differences, distance of distributions, verdicts
//! ```
//!
//! A [`GapRun`] is made of a run's document alone, so a stored run serves as well as a fresh one.

mod measures;
mod runs;
mod verdict;
mod waiting;

pub use verdict::{QUEUE_PART, QUEUE_TOLERANCE_MS, UTILIZATION_TOLERANCE, Verdict};
pub use waiting::{Distance, STEP_US, Waiting, WaitingAt};

use crate::label::Label;
use crate::machine::Machine;
use crate::metrics::Kind;
use crate::plan::Plan;
use crate::stats::{Paired, Summary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the document in a folder of results.
pub const GAP_FILE: &str = "gap.json";

/// Where the distribution of waiting times stands in a run's document.
const WAITING: &str = "waiting";

/// The gaps of several plans, as `gap --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// Each plan, in the order asked for.
    pub gaps: Vec<Gap>,
}

/// How far two worlds lie apart on one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Scenario id.
    pub scenario: String,
    /// A line on it.
    pub title: String,
    /// Which case of it; empty: none, or the scenario as written.
    pub case: Label,
    /// What `--set` changed, as it was typed.
    pub changes: Vec<String>,
    /// Controller of each flow, or TCP's congestion control; none for a flow without.
    pub controllers: Vec<Option<String>>,
    /// The command that makes the same again.
    pub command: String,
    /// How long a run lasts, s.
    pub duration_s: f64,
    /// The two worlds. Differences are the second minus the first.
    pub worlds: [String; 2],
    /// Seeds of the runs, in order; each was run in both.
    pub seeds: Vec<u64>,
    /// Each number that is compared: of the bottleneck, the run, and each flow.
    pub measured: Vec<Measured>,
    /// The distributions of queuing delay; none where no packet crossed the bottleneck in one of the worlds.
    pub queue_delay: Option<QueueDelay>,
    /// Whether the worlds are close.
    pub verdicts: Vec<Verdict>,
    /// The runs of each world, in the order of the seeds.
    pub runs: [Vec<RunLine>; 2],
}

/// A number in two worlds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Of which hop, if of one.
    pub hop: Option<String>,
    /// Of which flow, if of one; of neither: of the run.
    pub flow: Option<String>,
    /// Where it stands in the hop's, flow's or run's part of a run's document, such as `queue_ms.p95`.
    pub metric: String,
    /// Over the runs of each world; none where some run has no value.
    pub worlds: [Option<Summary>; 2],
    /// The second world's above the first's, seed by seed.
    pub difference: Option<Paired>,
}

/// The distributions of queuing delay at the bottleneck: of all packets that crossed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// The bottleneck.
    pub hop: String,
    /// The Kolmogorov-Smirnov distance between the worlds, all runs of each together: the largest difference, over all
    /// delays, of the shares of packets that waited less.
    pub ks: f64,
    /// The least delay at which the shares differ by that, ms; none: they are equal.
    pub at_ms: Option<f64>,
    /// Steps in which delays are counted, ms.
    pub step_ms: f64,
    /// Packets in each world.
    pub packets: [u64; 2],
    /// The distance between the two runs of each seed, in order.
    pub by_seed: Vec<Option<f64>>,
    /// In each world, the mean distance between runs of different seeds: how far runs lie apart without a change of world;
    /// none for one seed.
    pub between_seeds: [Option<f64>; 2],
}

/// One run of a gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// Its seed.
    pub seed: u64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// The machine that it ran on; none in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// What a gap needs of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct GapRun {
    line: RunLine,
    /// By [`measures::places`].
    values: Vec<Option<f64>>,
    waiting: Waiting,
}

impl GapRun {
    /// Of a run of this plan, by its document with `waiting`; none if it does not say what a gap needs.
    fn of(plan: &Plan, document: &Value) -> Option<Self> {
        let waiting = Waiting::deserialize(document.get(WAITING)?).ok().filter(Waiting::is_current)?;
        let line = RunLine::deserialize(document).ok()?;
        let values = measures::places(plan).iter().map(|at| document.pointer(&at.pointer)?.as_f64()).collect();
        Some(Self { line, values, waiting })
    }

    /// The machine that it ran on; none in virtual time.
    pub fn machine(&self) -> Option<&Machine> {
        self.line.machine.as_ref()
    }
}

impl Gap {
    /// Of runs of a plan in two worlds; `changes` is what `--set` changed, `command` what makes the same again.
    ///
    /// # Panics
    /// The two worlds did not run the same seeds.
    pub fn of(plan: &Plan, changes: Vec<String>, command: String, worlds: [&str; 2], runs: [&[GapRun]; 2]) -> Self {
        let seeds = runs.map(|runs| runs.iter().map(|run| run.line.seed).collect::<Vec<_>>());
        assert_eq!(seeds[0], seeds[1], "both worlds run the same seeds");
        let [seeds, _] = seeds;
        let places = measures::places(plan).into_iter().enumerate();
        let measured: Vec<Measured> = places.filter_map(|(index, place)| Measured::of(place, index, runs)).collect();
        Self {
            scenario: plan.id.clone(),
            title: plan.title.clone(),
            case: plan.case.clone(),
            changes,
            command,
            controllers: plan.flows.iter().map(|f| Some(f.control().to_owned())).collect(),
            duration_s: plan.duration.as_secs_f64(),
            worlds: worlds.map(str::to_owned),
            seeds,
            queue_delay: QueueDelay::of(&plan.hops[plan.bottleneck].id, runs),
            verdicts: verdict::verdicts(&measured),
            measured,
            runs: runs.map(|runs| runs.iter().map(|run| run.line.clone()).collect()),
        }
    }

    /// Whether every verdict is that the worlds are close.
    pub fn is_within(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.within)
    }
}

impl Measured {
    fn of(place: measures::Place, index: usize, runs: [&[GapRun]; 2]) -> Option<Self> {
        let values = runs.map(|runs| runs.iter().map(|run| run.values[index]).collect::<Option<Vec<f64>>>());
        let worlds = [0, 1].map(|world| Summary::of(values[world].as_deref()?));
        if worlds == [None, None] {
            return None;
        }
        let [first, second] = values;
        let pairs = first.zip(second).map(|(a, b)| a.into_iter().zip(b).collect::<Vec<_>>());
        let difference = pairs.and_then(|pairs| Paired::of(&pairs));
        Some(Self { hop: place.hop, flow: place.flow, metric: place.metric.to_owned(), worlds, difference })
    }

    /// What kind of number it is.
    pub fn kind(&self) -> Kind {
        measures::kind(&self.metric)
    }
}

impl Verdict {
    /// What kind of number it is on.
    pub fn kind(&self) -> Kind {
        measures::kind(&self.metric)
    }
}

impl QueueDelay {
    fn of(hop: &str, runs: [&[GapRun]; 2]) -> Option<Self> {
        let together = runs.map(|runs| {
            let mut all = Waiting::default();
            runs.iter().for_each(|run| all.merge(&run.waiting));
            all
        });
        let Distance { ks, at_ms } = together[0].distance(&together[1])?;
        let apart = |a: &GapRun, b: &GapRun| Some(a.waiting.distance(&b.waiting)?.ks);
        let between = |runs: &[GapRun]| {
            let pairs = (0..runs.len()).flat_map(|a| (a + 1..runs.len()).map(move |b| (a, b)));
            let all: Vec<f64> = pairs.filter_map(|(a, b)| apart(&runs[a], &runs[b])).collect();
            Some(Summary::of(&all)?.mean)
        };
        Some(Self {
            hop: hop.to_owned(),
            ks,
            at_ms,
            step_ms: f64::from(STEP_US) / 1e3,
            packets: [0, 1].map(|world: usize| together[world].packets()),
            by_seed: runs[0].iter().zip(runs[1]).map(|(a, b)| apart(a, b)).collect(),
            between_seeds: runs.map(between),
        })
    }
}
