//! What episodes are drawn from: scenarios, and numbers in them that each episode draws anew. A seed says all of an episode.

use super::agent::ActionSpace;
use super::episode::{Episode, Pilot, STEP};
use super::{GymError, Reward};
use crate::plan::Plan;
use crate::scenario::{Changes, Origin, Setting, load};
use paceline::Registry;
use paceline_units::{RandomStream, Streams, TimeDelta};

/// A key whose value each episode draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The key, as of `--set`.
    pub key: String,
    /// The value, with `{}` where a number goes, such as `{} kbps`. Each `{}` is drawn anew.
    pub text: String,
    /// The smallest number.
    pub low: f64,
    /// The largest. If both are above zero the logarithm is uniform, else the number.
    pub high: f64,
}

impl Range {
    fn check(&self) -> Result<(), GymError> {
        let bad = |cause: String| Err(GymError::Range { key: self.key.clone(), cause });
        if !self.text.contains("{}") {
            return bad(format!("`{}` has no {{}} for a number", self.text));
        }
        if !(self.low.is_finite() && self.high.is_finite() && self.low <= self.high) {
            return bad(format!("{} to {} is no range", self.low, self.high));
        }
        Ok(())
    }

    /// Its value with a number from `draw` in each place.
    fn setting(&self, mut draw: impl FnMut() -> f64) -> Result<Setting, GymError> {
        let mut parts = self.text.split("{}");
        let mut value = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // Six digits: what is drawn can be read, and written down.
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

/// What a course is made of.
#[derive(Clone, Debug)]
pub struct CourseSpec {
    /// The scenarios, each under its changes; each episode draws one.
    pub scenarios: Vec<(Origin, Changes)>,
    /// What each episode draws.
    pub ranges: Vec<Range>,
    /// The flow that is steered, by its id; none: the first media flow.
    pub flow: Option<String>,
    /// Who flies.
    pub pilot: Pilot,
    /// The length of a step.
    pub step: TimeDelta,
    /// What a step is worth.
    pub reward: Reward,
}

impl CourseSpec {
    /// One scenario as it is written, for an agent.
    pub fn of(scenario: Origin) -> Self {
        Self {
            scenarios: vec![(scenario, Changes::default())],
            ranges: Vec::new(),
            flow: None,
            pilot: Pilot::Agent,
            step: STEP,
            reward: Reward::default(),
        }
    }
}

/// What episodes are drawn from.
#[derive(Debug)]
pub struct Course {
    spec: CourseSpec,
    /// The plan of each scenario and its flow: with each range at its smallest number, where there are any.
    plans: Vec<(Plan, usize)>,
}

impl Course {
    /// A course.
    ///
    /// # Errors
    /// Any of its scenarios is wrong, at the smallest or at the largest number of each range; or it leaves nothing to steer.
    pub fn new(spec: CourseSpec, registry: &Registry) -> Result<Self, GymError> {
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
            Episode::new(plan, registry, &spec.pilot, *flow, 1, spec.step)?;
        }
        Ok(Self { plans: lowest, spec })
    }

    /// The episode of this seed.
    ///
    /// # Errors
    /// What it draws makes no plan.
    pub fn episode(&self, registry: &Registry, seed: u64) -> Result<Episode, GymError> {
        let mut random = Streams::new(seed).stream("gym/course");
        let which = random.uniform(0.0, self.plans.len() as f64) as usize;
        let Self { spec, plans } = self;
        let fly = |(plan, flow): &(Plan, usize)| Episode::new(plan, registry, &spec.pilot, *flow, seed, spec.step);
        if spec.ranges.is_empty() {
            return fly(&plans[which]);
        }
        let settings: Vec<_> =
            spec.ranges.iter().map(|range| range.setting(|| range.draw(&mut random))).collect::<Result<_, _>>()?;
        fly(&plan(spec, &spec.scenarios[which], &settings, registry)?)
    }

    /// What actions mean, in the first scenario.
    pub fn space(&self) -> ActionSpace {
        let (plan, flow) = &self.plans[0];
        let media = plan.flows[*flow].media().expect("the flow is one of media");
        ActionSpace { min: media.min_rate, max: media.most() }
    }

    /// What a step is worth.
    pub fn reward(&self) -> &Reward {
        &self.spec.reward
    }
}

/// The plan of a scenario with what was drawn, and the flow that is steered.
fn plan(
    spec: &CourseSpec,
    (scenario, changes): &(Origin, Changes),
    drawn: &[Setting],
    registry: &Registry,
) -> Result<(Plan, usize), GymError> {
    let settings = [&changes.settings[..], drawn].concat();
    let plan = load(scenario, &Changes { settings, ..changes.clone() }, registry).map_err(Box::new)?;
    let mut media = plan.flows.iter().enumerate().filter(|(_, flow)| flow.media().is_some());
    let flow = media.find(|(_, flow)| spec.flow.as_ref().is_none_or(|id| *id == flow.id)).map(|(index, _)| index);
    let known = || plan.flows.iter().filter(|flow| flow.media().is_some()).map(|flow| flow.id.clone()).collect();
    let flow =
        flow.ok_or_else(|| GymError::NoFlow { scenario: plan.id.clone(), flow: spec.flow.clone(), known: known() })?;
    Ok((plan, flow))
}
