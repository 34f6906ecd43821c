//! NADA, generation by generation: each an assembly of what stands here and of [`blocks`](crate::blocks).

mod adaptation;
mod loss_window;
pub mod nada2015;
mod queuing_delay;
mod shaping;
mod smoothing;
mod warping;

pub use adaptation::{GradualConfig, RampUpConfig, gradual, ramp_up};
pub use loss_window::{LatePackets, LossWindow};
pub use queuing_delay::QueuingDelay;
pub use shaping::{Shaping, ShapingConfig};
pub use smoothing::MedianEwma;
pub use warping::quartic_warping;
