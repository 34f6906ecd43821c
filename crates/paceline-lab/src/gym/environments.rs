// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many environments side by side, on threads. The results of each depend neither on the others nor on the threads.

use super::agent::FEATURES;
use super::episode::Episode;
use super::error::GymError;
use super::ground_truth::{TRUTHS, Truth};
use super::reward::Reward;
use super::task_sampler::TaskDistribution;
use paceline::Registry;
use paceline_units::{RandomStream, RandomStreams};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Environments side by side. When the episode of one is over, the next step begins its next episode and ignores the
/// action (gymnasium's `NEXT_STEP`).
pub struct Gym {
    tasks: TaskDistribution,
    registry: Registry,
    environments: Vec<Environment>,
    history: usize,
    /// `None`: the caller's thread is used.
    pool: Option<ThreadPool>,
}

/// Output buffers of a step or a reset, environment after environment.
pub struct Outputs<'a> {
    /// For each environment the last steps, the newest last, each [`FEATURES`].
    pub observations: &'a mut [f32],
    pub rewards: &'a mut [f64],
    /// Whether the episode is over, because its time is up; nothing else ends one.
    pub truncated: &'a mut [bool],
    /// For each environment [`TRUTHS`].
    pub truths: &'a mut [f64],
}

struct Environment {
    seeds: RandomStream,
    episode: Option<Episode>,
    /// The last steps, oldest first.
    observed: Vec<f32>,
}

impl Gym {
    /// Creates `environments` environments of a task distribution, each observed over its last `history` steps, on `threads`
    /// threads.
    pub fn new(
        tasks: TaskDistribution,
        registry: Registry,
        environments: usize,
        history: usize,
        threads: usize,
    ) -> Result<Self, GymError> {
        let pool = pool_of(threads)?;
        let history = history.max(1);
        let environment = |number: usize| Environment {
            seeds: RandomStreams::new(number as u64).stream("gym/seeds"),
            episode: None,
            observed: vec![0.0; history * FEATURES.len()],
        };
        let environments = (0..environments).map(environment).collect();
        Ok(Self { tasks, registry, environments, history, pool })
    }

    pub fn environments(&self) -> usize {
        self.environments.len()
    }

    /// Returns the number of steps over which each environment is observed.
    pub fn history(&self) -> usize {
        self.history
    }

    pub fn tasks(&self) -> &TaskDistribution {
        &self.tasks
    }

    /// Begins an episode in every environment: that of the given seed, or the next of the environment where none is given.
    /// The seeds of later episodes follow from a given one.
    ///
    /// # Errors
    /// The number of seeds differs from that of environments, or the drawn values make no valid plan.
    pub fn reset(&mut self, seeds: &[Option<u64>], out: Outputs<'_>) -> Result<(), GymError> {
        check_length("seeds", seeds.len(), self.environments.len())?;
        self.each(seeds, out, |environment, seed, tasks, registry, out| {
            let seed = match seed {
                Some(seed) => {
                    environment.seeds = RandomStreams::new(*seed).stream("gym/seeds");
                    *seed
                }
                None => next_seed(&mut environment.seeds),
            };
            environment.begin(seed, tasks, registry, out)
        })
    }

    /// Makes one step of every episode.
    ///
    /// # Errors
    /// The number of actions differs from that of environments, or an action is not finite: then no episode has changed. Or
    /// the drawn values make no valid plan, or a controller failed: its environment begins a new episode in the next step.
    pub fn step(&mut self, actions: &[f32], out: Outputs<'_>) -> Result<(), GymError> {
        check_length("actions", actions.len(), self.environments.len())?;
        if let Some(index) = actions.iter().position(|action| !action.is_finite()) {
            return Err(GymError::Action { index, action: actions[index] });
        }
        self.each(actions, out, |environment, action, tasks, registry, out| match &mut environment.episode {
            Some(episode) if !episode.is_over() => {
                *out.reward = episode.step(*action, tasks.reward()).inspect_err(|_| environment.episode = None)?;
                environment.observe(out);
                Ok(())
            }
            _ => {
                let seed = next_seed(&mut environment.seeds);
                environment.begin(seed, tasks, registry, out)
            }
        })
    }

    /// Calls `act` with every environment, its input and its part of the outputs.
    fn each<I: Sync>(
        &mut self,
        inputs: &[I],
        out: Outputs<'_>,
        act: impl Fn(&mut Environment, &I, &TaskDistribution, &Registry, Output<'_>) -> Result<(), GymError> + Sync,
    ) -> Result<(), GymError> {
        let Self { tasks, registry, environments, history, pool } = self;
        let (n, width) = (environments.len(), *history * FEATURES.len());
        check_length("numbers of observations", out.observations.len(), n * width)?;
        check_length("rewards", out.rewards.len(), n)?;
        check_length("ends", out.truncated.len(), n)?;
        check_length("truths", out.truths.len(), n * TRUTHS.len())?;
        let one = |(environment, (input, output)): (&mut Environment, (&I, Output<'_>))| {
            act(environment, input, tasks, registry, output)
        };
        let parts = environments.iter_mut().zip(inputs.iter().zip(out.split(width)));
        match pool {
            None => { parts }.try_for_each(one),
            Some(pool) => {
                let parts: Vec<_> = parts.collect();
                pool.install(|| parts.into_par_iter().map(one).reduce(|| Ok(()), Result::and))
            }
        }
    }
}

impl<'a> Outputs<'a> {
    /// Splits the buffers by environment; `width` is the length of an observation.
    fn split(self, width: usize) -> impl Iterator<Item = Output<'a>> {
        let mut truths = self.truths.chunks_mut(TRUTHS.len());
        let mut observations = self.observations.chunks_mut(width);
        let rewards = self.rewards.iter_mut().zip(self.truncated);
        rewards.map_while(move |(reward, truncated)| {
            Some(Output { observation: observations.next()?, reward, truncated, truth: truths.next()? })
        })
    }
}

struct Output<'a> {
    observation: &'a mut [f32],
    reward: &'a mut f64,
    truncated: &'a mut bool,
    truth: &'a mut [f64],
}

impl Environment {
    fn begin(
        &mut self,
        seed: u64,
        tasks: &TaskDistribution,
        registry: &Registry,
        out: Output<'_>,
    ) -> Result<(), GymError> {
        self.episode = Some(tasks.episode(registry, seed)?);
        self.observed.fill(0.0);
        *out.reward = 0.0;
        self.observe(out);
        Ok(())
    }

    /// Writes the observation after a step, or before the first.
    fn observe(&mut self, out: Output<'_>) {
        let Some(episode) = &self.episode else { return };
        self.observed.copy_within(FEATURES.len().., 0);
        let newest = self.observed.len() - FEATURES.len();
        episode.observe(&mut self.observed[newest..]);
        out.observation.copy_from_slice(&self.observed);
        *out.truncated = episode.is_over();
        out.truth.copy_from_slice(&episode.truth().values());
    }
}

/// Starts this many threads; `None` if that of the caller is enough.
fn pool_of(threads: usize) -> Result<Option<ThreadPool>, GymError> {
    if threads <= 1 {
        return Ok(None);
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Some).map_err(|error| GymError::Threads(error.to_string()))
}

/// Returns a seed that a double holds exactly and that people can type after `--seed`.
fn next_seed(seeds: &mut RandomStream) -> u64 {
    seeds.bits() >> 32
}

fn check_length(what: &'static str, got: usize, wanted: usize) -> Result<(), GymError> {
    if got == wanted { Ok(()) } else { Err(GymError::Length { what, got, wanted }) }
}

/// The results of an episode: means over its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    pub seed: u64,
    pub steps: u64,
    pub reward: f64,
    /// Goodput over the rate that the flow could have used, from 0 to 1.
    pub used: f64,
    /// Delay over propagation, s.
    pub delay_s: f64,
    /// Fraction lost, of all packets that arrived or were lost.
    pub loss: f64,
}

/// Runs the episodes of these seeds under the policy of the task distribution, on `threads` threads.
///
/// # Errors
/// The drawn values make no valid plan, a controller failed, or threads cannot be started.
pub fn evaluate(
    tasks: &TaskDistribution,
    registry: &Registry,
    seeds: &[u64],
    threads: usize,
) -> Result<Vec<Score>, GymError> {
    let one = |seed: &u64| score(tasks.episode(registry, *seed)?, *seed, tasks.reward());
    match pool_of(threads)? {
        None => seeds.iter().map(one).collect(),
        Some(pool) => pool.install(|| seeds.par_iter().map(one).collect()),
    }
}

fn score(mut episode: Episode, seed: u64, reward: &Reward) -> Result<Score, GymError> {
    let mut score = Score { seed, ..Score::default() };
    // The first term of the reward alone.
    let share = Reward { delay_per_s: 0.0, loss: 0.0 };
    let mut last = Truth::default();
    while !episode.is_over() {
        score.reward += episode.step(0.0, reward)?;
        last = *episode.truth();
        score.used += share.evaluate(&last);
        score.delay_s += last.delay_s;
        score.steps += 1;
    }
    let steps = score.steps.max(1) as f64;
    for sum in [&mut score.reward, &mut score.used, &mut score.delay_s] {
        *sum /= steps;
    }
    let known = last.arrived + last.lost;
    score.loss = if known == 0.0 { 0.0 } else { last.lost / known };
    Ok(score)
}
