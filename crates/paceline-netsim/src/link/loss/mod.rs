//! Random loss on the wire.
//!
//! To add a model: a file here with a [`LossEntry`] and a [`LossProcess`], and a line in `registry.rs`.

mod bernoulli;
mod gilbert_elliott;
mod registry;

pub use bernoulli::Bernoulli;
pub use gilbert_elliott::GilbertElliott;
pub use registry::{LOSS_MODELS, LossEntry, LossModel};

use paceline_units::RandomStream;

/// Decides which packets are lost on the wire.
pub trait LossProcess {
    /// Returns whether the next packet is lost. The caller keeps `state` between packets; it is 0 at first, and a scheduled
    /// change of model keeps it.
    fn is_lost(&self, state: &mut u32, random: &mut RandomStream) -> bool;
}
