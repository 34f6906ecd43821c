//! The blocks that generations of controllers share: one idea a file, named by the papers' word.

mod acked_rate;
mod adaptive_threshold;
mod burst_groups;
mod convergence;
mod frame_groups;
mod incoming_rate;
mod kalman;
mod kalman_two_state;
mod loss_controller;
mod overuse_detector;
mod queue_delay;
mod send_side_estimate;
mod tfrc;
mod trendline;

pub use acked_rate::{AckedRate, AckedRateConfig};
pub use adaptive_threshold::{AdaptiveThreshold, ThresholdConfig};
pub(crate) use burst_groups::rounded;
pub use burst_groups::{BurstConfig, BurstGroups};
pub use convergence::Convergence;
pub use frame_groups::{Departure, FrameGroups, GroupDelta};
pub use incoming_rate::IncomingRate;
pub use kalman::{KalmanConfig, ScalarKalman};
pub use kalman_two_state::{TwoStateConfig, TwoStateKalman};
pub use loss_controller::{LossConfig, LossController};
pub use overuse_detector::{OveruseDetector, Usage};
pub use queue_delay::{BaseDelayConfig, QueueDelay};
pub use send_side_estimate::{SendSideConfig, SendSideEstimate};
pub use tfrc::tfrc;
pub use trendline::{Trendline, TrendlineConfig};
