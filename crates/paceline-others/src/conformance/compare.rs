// SPDX-License-Identifier: MIT OR Apache-2.0
//! The comparison: one script through both controllers.

use crate::conformance::case::Case;
use crate::conformance::input::{Input, MAX_BPS, MIN_BPS, Output};
use crate::conformance::oracle::{Oracle, trials};
use crate::conformance::script::Script;
use crate::conformance::subject::Subject;
use crate::conformance::world::World;
use core::fmt;
use core::ops::AddAssign;
use goog_cc::transport::StreamsConfig;

/// The relative difference up to which two targets agree.
const TOLERANCE: f64 = 0.01;

/// The counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All inputs.
    pub inputs: u64,
    /// All sent packets.
    pub packets: u64,
    /// The decisions at which the target of one of the two changed, and that of the oracle is not at a bound.
    pub decisions: u64,
    /// Those that agree within 1 %.
    pub agree: u64,
    /// Those that are equal to 1 bit/s.
    pub equal: u64,
    /// The inputs after which pacing and padding rates are within 1 %.
    pub same_pacing: u64,
    /// The inputs after which one of the two returns clusters.
    pub probes: u64,
    /// Those after which both return the same ones.
    pub same_probes: u64,
}

impl Tally {
    /// Returns the share of decisions that agree.
    pub fn share(&self) -> f64 {
        if self.decisions == 0 { 1.0 } else { self.agree as f64 / self.decisions as f64 }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.packets += other.packets;
        self.decisions += other.decisions;
        self.agree += other.agree;
        self.equal += other.equal;
        self.same_pacing += other.same_pacing;
        self.probes += other.probes;
        self.same_probes += other.same_probes;
    }
}

/// The first input after which the two differ.
pub struct Divergence {
    /// The script.
    pub script: Script,
    /// The input.
    pub input: Input,
    /// What each returned.
    pub outputs: (Output, Output),
    /// The state of each.
    pub states: (String, String),
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oracle, subject) = &self.outputs;
        writeln!(f, "{:?} at {:.3} s after {}", self.script, self.input.at() as f64 / 1e6, kind(&self.input))?;
        writeln!(f, "{:<60} | subject", "oracle")?;
        writeln!(f, "{:<60} | {}", describe(oracle), describe(subject))?;
        let (left, right): (Vec<&str>, Vec<&str>) = (self.states.0.lines().collect(), self.states.1.lines().collect());
        for index in 0..left.len().max(right.len()) {
            let line = |side: &[&str]| side.get(index).copied().unwrap_or_default().to_owned();
            writeln!(f, "{:<60} | {}", line(&left), line(&right))?;
        }
        Ok(())
    }
}

fn kind(input: &Input) -> String {
    match input {
        Input::Feedback { packets, .. } => {
            let received = packets.iter().filter(|packet| packet.arrival.is_some()).count();
            format!("feedback on {} packets, {received} of them received", packets.len())
        }
        other => format!("{other:?}"),
    }
}

fn describe(output: &Output) -> String {
    let clusters: Vec<String> = output.clusters.iter().map(|c| format!("{}: {}", c.id, c.bps)).collect();
    format!("target {}, clusters [{}]", output.target, clusters.join(", "))
}

/// Runs a script through both. Returns the counts, and the first divergence, if there is one.
pub fn compare(script: &Script, case: Case) -> (Tally, Option<Divergence>) {
    let oracle = Oracle::new(trials(case.vintage(), case.has_window()), StreamsConfig::default());
    compare_pair(script, oracle, Subject::new(&case.config()))
}

/// Runs a script through these two.
pub fn compare_pair(script: &Script, mut oracle: Oracle, mut subject: Subject) -> (Tally, Option<Divergence>) {
    let (mut tally, mut first) = (Tally::default(), None);
    let mut before = (0, 0);
    let world = World::new(script);
    let rtt = world.round_trip_ms();
    world.run(|input| {
        let mut expected = oracle.handle(input).clone();
        let mut actual = subject.handle(input).clone();
        if let Input::Report(at, ..) = input {
            // Each report also measures the round-trip time.
            let input = Input::Rtt(*at, rtt);
            let (one, two) = (oracle.handle(&input), subject.handle(&input));
            expected.target = one.target;
            actual.target = two.target;
        }
        tally.inputs += 1;
        tally.packets += u64::from(matches!(input, Input::Sent(_)));
        let mut differs = false;
        if !(expected.clusters.is_empty() && actual.clusters.is_empty()) {
            tally.probes += 1;
            let same = same_clusters(&expected, &actual);
            tally.same_probes += u64::from(same);
            differs |= !same;
        }
        let targets = (expected.target, actual.target);
        let at_bound = targets.0 <= MIN_BPS || targets.0 >= MAX_BPS;
        if targets != before && !at_bound {
            let agrees = near(targets.0, targets.1);
            tally.decisions += 1;
            tally.agree += u64::from(agrees);
            tally.equal += u64::from(targets.0.abs_diff(targets.1) <= 1);
            differs |= !agrees;
        }
        before = targets;
        tally.same_pacing += u64::from(near(expected.pacing, actual.pacing) && near(expected.padding, actual.padding));
        if differs && first.is_none() {
            let states = (oracle.state(input.at()), subject.state());
            let outputs = (expected.clone(), actual);
            first = Some(Divergence { script: *script, input: input.clone(), outputs, states });
        }
        expected
    });
    (tally, first)
}

/// Returns whether a rate is within 1 % of the expected one.
fn near(expected: u64, actual: u64) -> bool {
    expected.abs_diff(actual) as f64 <= TOLERANCE * expected as f64
}

/// Returns whether the clusters have the same numbers, and rates within 1 %.
fn same_clusters(expected: &Output, actual: &Output) -> bool {
    expected.clusters.len() == actual.clusters.len()
        && expected
            .clusters
            .iter()
            .zip(&actual.clusters)
            .all(|(one, two)| near(one.bps, two.bps) && (one.id, one.us, one.packets) == (two.id, two.us, two.packets))
}
