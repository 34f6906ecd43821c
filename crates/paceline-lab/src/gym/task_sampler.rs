// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task distributions: scenarios, and numbers in them that each episode draws anew. A seed determines an episode.

use super::agent::ActionSpace;
use super::episode::{Episode, Policy, STEP};
use super::error::GymError;
use super::reward::Reward;
use paceline::Registry;
use paceline_netsim::plan::Plan;
use paceline_scenario::{Changes, Origin, Override, load};
use paceline_units::{RandomStream, RandomStreams, TimeDelta};

/// A key whose value each episode draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The key, as in `--set`.
    pub key: String,
    /// The value, with `{}` in place of a number, such as `{} kbps`. Each `{}` is drawn on its own.
    pub text: String,
    pub low: f64,
    /// The largest number. If both are above zero, the logarithm is uniform, else the number.
    pub high: f64,
}

impl Range {
    fn check(&self) -> Result<(), GymError> {
        let bad = |cause: String| Err(GymError::Range { key: self.key.clone(), cause });
        if !self.text.contains("{}") {
            return bad(format!("`{}` has no {{}} for a number", self.text));
        }
        if !(self.low.is_finite() && self.high.is_finite() && self.low <= self.high) {
            return bad(format!("range {} to {}: both ends must be finite and low ≤ high", self.low, self.high));
        }
        Ok(())
    }

    /// Returns the value with a number from `draw` in each place.
    fn setting(&self, mut draw: impl FnMut() -> f64) -> Result<Override, GymError> {
        let mut parts = self.text.split("{}");
        let mut value = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // Six digits, so that people can read and repeat what was drawn.
            value += &format!("{:.6}{part}", draw());
        }
        let setting = format!("{}={value}", self.key).parse();
        setting.map_err(|cause| GymError::Range { key: self.key.clone(), cause })
    }

    fn draw(&self, random: &mut RandomStream) -> f64 {
        if self.low > 0.0 {
            let (low, high) = (libm::log(self.low), libm::log(self.high));
            libm::exp(random.uniform(low, high)).clamp(self.low, self.high)
        } else {
            random.uniform(self.low, self.high)
        }
    }
}

#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The scenarios, each with its changes; each episode draws one.
    pub scenarios: Vec<(Origin, Changes)>,
    pub ranges: Vec<Range>,
    /// Id of the flow to control; if `None`, the first media flow.
    pub flow: Option<String>,
    pub policy: Policy,
    pub step: TimeDelta,
    pub reward: Reward,
}

impl TaskSpec {
    /// Creates the spec of one scenario as it is written, for an agent.
    pub fn for_scenario(scenario: Origin) -> Self {
        Self {
            scenarios: vec![(scenario, Changes::default())],
            ranges: Vec::new(),
            flow: None,
            policy: Policy::Agent,
            step: STEP,
            reward: Reward::default(),
        }
    }
}

#[derive(Debug)]
pub struct TaskDistribution {
    spec: TaskSpec,
    /// The plan of each scenario and the index of its flow, with each range at its smallest number.
    plans: Vec<(Plan, usize)>,
}

impl TaskDistribution {
    /// Creates a task distribution.
    ///
    /// # Errors
    /// One of its scenarios is wrong at the smallest or at the largest number of each range, or it has no flow to control.
    pub fn new(spec: TaskSpec, registry: &Registry) -> Result<Self, GymError> {
        spec.ranges.iter().try_for_each(Range::check)?;
        if spec.scenarios.is_empty() {
            return Err(GymError::NoScenario);
        }
        let plans = |end: fn(&Range) -> f64| {
            let settings: Vec<_> =
                spec.ranges.iter().map(|range| range.setting(|| end(range))).collect::<Result<_, _>>()?;
            spec.scenarios
                .iter()
                .map(|scenario| plan(&spec, scenario, &settings, registry))
                .collect::<Result<Vec<_>, _>>()
        };
        let lowest = plans(|range| range.low)?;
        let highest = plans(|range| range.high)?;
        for (plan, flow) in lowest.iter().chain(&highest) {
            Episode::new(plan, registry, &spec.policy, *flow, 1, spec.step)?;
        }
        Ok(Self { plans: lowest, spec })
    }

    /// Returns the episode of this seed.
    pub fn episode(&self, registry: &Registry, seed: u64) -> Result<Episode, GymError> {
        let mut random = RandomStreams::new(seed).stream("gym/course");
        let which = random.uniform(0.0, self.plans.len() as f64) as usize;
        let Self { spec, plans } = self;
        let episode = |(plan, flow): &(Plan, usize)| Episode::new(plan, registry, &spec.policy, *flow, seed, spec.step);
        if spec.ranges.is_empty() {
            return episode(&plans[which]);
        }
        let settings: Vec<_> =
            spec.ranges.iter().map(|range| range.setting(|| range.draw(&mut random))).collect::<Result<_, _>>()?;
        episode(&plan(spec, &spec.scenarios[which], &settings, registry)?)
    }

    pub fn space(&self) -> ActionSpace {
        let (plan, flow) = &self.plans[0];
        let media = plan.flows[*flow].media().expect("the flow is one of media");
        ActionSpace { min: media.min_rate, max: media.max_rate() }
    }

    pub fn reward(&self) -> &Reward {
        &self.spec.reward
    }
}

/// Returns the plan of a scenario with the drawn values, and the index of the flow to control.
fn plan(
    spec: &TaskSpec,
    (scenario, changes): &(Origin, Changes),
    drawn: &[Override],
    registry: &Registry,
) -> Result<(Plan, usize), GymError> {
    let settings = [&changes.settings[..], drawn].concat();
    let plan = load(scenario, &Changes { settings, ..changes.clone() }, registry).map_err(Box::new)?.plan;
    let mut media = plan.flows.iter().enumerate().filter(|(_, flow)| flow.media().is_some());
    let flow = media.find(|(_, flow)| spec.flow.as_ref().is_none_or(|id| *id == flow.id)).map(|(index, _)| index);
    let known = || plan.flows.iter().filter(|flow| flow.media().is_some()).map(|flow| flow.id.clone()).collect();
    let flow =
        flow.ok_or_else(|| GymError::NoFlow { scenario: plan.id.clone(), flow: spec.flow.clone(), known: known() })?;
    Ok((plan, flow))
}
