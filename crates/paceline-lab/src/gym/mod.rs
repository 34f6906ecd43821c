// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gym: runs that an agent controls step by step, for reinforcement learning.
//!
//! An [`Episode`] is one run of the simulator in steps of equal length. In each step the agent sets the rate of its flow.
//! It observes the state that a sender knows at the end of the step ([`FEATURES`], from per-packet feedback) and gets a
//! [`Reward`] for what happened to its packets. The ground truth ([`TRUTHS`]) is returned separately. Episodes are sampled
//! from a [`TaskDistribution`], and a [`Gym`] runs many of them in parallel, on threads.
//!
//! The agent takes the place of a controller's send half (`agent.rs`), under the same guard. Encoder, pacer, packets,
//! feedback and path are those of every run. A policy with a high reward in the gym therefore performs the same way in a
//! normal run, and an episode under a registered controller equals the run of `paceline run`, to the hash.

mod agent;
mod environments;
mod episode;
mod error;
mod ground_truth;
mod reward;
mod task_sampler;

pub use agent::{ActionSpace, FEATURES, Observation, Quantity};
pub use environments::{Gym, Outputs, Score, evaluate};
pub use episode::{Episode, Policy, STEP};
pub use error::GymError;
pub use ground_truth::{TRUTHS, Truth};
pub use reward::Reward;
pub use task_sampler::{Range, TaskDistribution, TaskSpec};
