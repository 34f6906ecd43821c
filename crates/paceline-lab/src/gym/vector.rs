//! Many episodes side by side, on threads. What each comes to does not depend on how many there are, nor on the threads.

use super::agent::FEATURES;
use super::course::Course;
use super::episode::Episode;
use super::tally::{TRUTHS, Truth};
use super::{GymError, Reward};
use paceline::Registry;
use paceline_units::{RandomStream, Streams};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Episodes side by side. Each seat has a run of its own; when that is over, the next step begins the seat's next episode and
/// its action counts for nothing (gymnasium's `NEXT_STEP`).
pub struct Gym {
    course: Course,
    registry: Registry,
    seats: Vec<Seat>,
    history: usize,
    /// None: on the thread of the caller.
    pool: Option<ThreadPool>,
}

/// Where a step or a reset is written, seat after seat.
pub struct Outputs<'a> {
    /// For each seat the last steps, the newest last, each [`FEATURES`].
    pub observations: &'a mut [f32],
    /// What the step was worth.
    pub rewards: &'a mut [f64],
    /// Whether the episode is over: the run's time is up. Nothing else ends one.
    pub truncated: &'a mut [bool],
    /// For each seat [`TRUTHS`].
    pub truths: &'a mut [f64],
}

/// One of the episodes, and the seeds of those to come.
struct Seat {
    seeds: RandomStream,
    episode: Option<Episode>,
    /// The last steps, oldest first.
    seen: Vec<f32>,
}

impl Gym {
    /// `seats` episodes of a course, each observed over its last `history` steps, on `threads` threads.
    ///
    /// # Errors
    /// Threads cannot be started.
    pub fn new(
        course: Course,
        registry: Registry,
        seats: usize,
        history: usize,
        threads: usize,
    ) -> Result<Self, GymError> {
        let pool = pool_of(threads)?;
        let history = history.max(1);
        let seat = |number: usize| Seat {
            seeds: Streams::new(number as u64).stream("gym/seeds"),
            episode: None,
            seen: vec![0.0; history * FEATURES.len()],
        };
        Ok(Self { course, registry, seats: (0..seats).map(seat).collect(), history, pool })
    }

    /// How many episodes there are.
    pub fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Over how many steps each is observed.
    pub fn history(&self) -> usize {
        self.history
    }

    /// What they are drawn from.
    pub fn course(&self) -> &Course {
        &self.course
    }

    /// Begins an episode in every seat: that of the seat's seed, or the next of the seat's own where none is given. The seeds
    /// of later episodes follow from the one given.
    ///
    /// # Errors
    /// Not as many seeds as seats, or no plan comes of what is drawn.
    pub fn reset(&mut self, seeds: &[Option<u64>], out: Outputs<'_>) -> Result<(), GymError> {
        must_be("seeds", seeds.len(), self.seats.len())?;
        self.each(seeds, out, |seat, seed, course, registry, out| {
            let seed = match seed {
                Some(seed) => {
                    seat.seeds = Streams::new(*seed).stream("gym/seeds");
                    *seed
                }
                None => next_seed(&mut seat.seeds),
            };
            seat.begin(seed, course, registry, out)
        })
    }

    /// One step of every episode.
    ///
    /// # Errors
    /// Not as many actions as seats, or an action that is not a number; then no episode has moved. Or no plan comes of what
    /// is drawn.
    pub fn step(&mut self, actions: &[f32], out: Outputs<'_>) -> Result<(), GymError> {
        must_be("actions", actions.len(), self.seats.len())?;
        if let Some(index) = actions.iter().position(|action| !action.is_finite()) {
            return Err(GymError::Action { index, action: actions[index] });
        }
        self.each(actions, out, |seat, action, course, registry, out| match &mut seat.episode {
            Some(episode) if !episode.is_over() => {
                *out.reward = episode.step(*action, course.reward());
                seat.look(out);
                Ok(())
            }
            _ => {
                let seed = next_seed(&mut seat.seeds);
                seat.begin(seed, course, registry, out)
            }
        })
    }

    /// Does the same with every seat, its input and its part of what is written.
    fn each<I: Sync>(
        &mut self,
        inputs: &[I],
        out: Outputs<'_>,
        act: impl Fn(&mut Seat, &I, &Course, &Registry, Output<'_>) -> Result<(), GymError> + Sync,
    ) -> Result<(), GymError> {
        let Self { course, registry, seats, history, pool } = self;
        let (n, width) = (seats.len(), *history * FEATURES.len());
        must_be("numbers of observations", out.observations.len(), n * width)?;
        must_be("rewards", out.rewards.len(), n)?;
        must_be("ends", out.truncated.len(), n)?;
        must_be("truths", out.truths.len(), n * TRUTHS.len())?;
        let one = |((((seat, input), observation), (reward, truncated)), truth)| {
            act(seat, input, course, registry, Output { observation, reward, truncated, truth })
        };
        match pool {
            None => {
                let parts = seats.iter_mut().zip(inputs).zip(out.observations.chunks_mut(width));
                let parts = parts.zip(out.rewards.iter_mut().zip(out.truncated));
                parts.zip(out.truths.chunks_mut(TRUTHS.len())).try_for_each(one)
            }
            Some(pool) => pool.install(|| {
                let parts = seats.par_iter_mut().zip(inputs).zip(out.observations.par_chunks_mut(width));
                let parts = parts.zip(out.rewards.par_iter_mut().zip(out.truncated));
                parts.zip(out.truths.par_chunks_mut(TRUTHS.len())).map(one).reduce(|| Ok(()), Result::and)
            }),
        }
    }
}

/// The part of [`Outputs`] that is one seat's.
struct Output<'a> {
    observation: &'a mut [f32],
    reward: &'a mut f64,
    truncated: &'a mut bool,
    truth: &'a mut [f64],
}

impl Seat {
    fn begin(&mut self, seed: u64, course: &Course, registry: &Registry, out: Output<'_>) -> Result<(), GymError> {
        self.episode = Some(course.episode(registry, seed)?);
        self.seen.fill(0.0);
        *out.reward = 0.0;
        self.look(out);
        Ok(())
    }

    /// Writes what is to be seen after a step, or before the first.
    fn look(&mut self, out: Output<'_>) {
        let Some(episode) = &self.episode else { return };
        self.seen.copy_within(FEATURES.len().., 0);
        let newest = self.seen.len() - FEATURES.len();
        episode.observe(&mut self.seen[newest..]);
        out.observation.copy_from_slice(&self.seen);
        *out.truncated = episode.is_over();
        out.truth.copy_from_slice(&episode.truth().values());
    }
}

/// So many threads; none: the caller's own is enough.
fn pool_of(threads: usize) -> Result<Option<ThreadPool>, GymError> {
    if threads <= 1 {
        return Ok(None);
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Some).map_err(|error| GymError::Threads(error.to_string()))
}

/// Small enough to be told as a double, and typed after `--seed`.
fn next_seed(seeds: &mut RandomStream) -> u64 {
    seeds.bits() >> 32
}

fn must_be(what: &'static str, got: usize, wanted: usize) -> Result<(), GymError> {
    if got == wanted { Ok(()) } else { Err(GymError::Length { what, got, wanted }) }
}

/// What an episode came to, means over its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Its seed.
    pub seed: u64,
    /// Steps.
    pub steps: u64,
    /// Reward.
    pub reward: f64,
    /// Goodput over what the flow could have used, 0 to 1.
    pub used: f64,
    /// Delay beyond propagation, s.
    pub delay_s: f64,
    /// Fraction lost, of all packets whose fate was known.
    pub loss: f64,
}

/// The episodes of these seeds under the course's own pilot, on `threads` threads.
///
/// # Errors
/// No plan comes of what is drawn, or threads cannot be started.
pub fn evaluate(course: &Course, registry: &Registry, seeds: &[u64], threads: usize) -> Result<Vec<Score>, GymError> {
    let one = |seed: &u64| score(course.episode(registry, *seed)?, *seed, course.reward());
    match pool_of(threads)? {
        None => seeds.iter().map(one).collect(),
        Some(pool) => pool.install(|| seeds.par_iter().map(one).collect()),
    }
}

fn score(mut episode: Episode, seed: u64, reward: &Reward) -> Result<Score, GymError> {
    let mut score = Score { seed, ..Score::default() };
    // The share alone: what the first term of the reward is.
    let share = Reward { delay_per_s: 0.0, loss: 0.0 };
    let mut last = Truth::default();
    while !episode.is_over() {
        score.reward += episode.step(0.0, reward);
        last = *episode.truth();
        score.used += share.of(&last);
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
