//! The blocks that several controllers share, one file each, with the names that the papers use.

mod acked_rate;
mod adaptive_threshold;
mod burst_groups;
mod frame_groups;
mod group_delta;
mod incoming_rate;
mod kalman;
mod kalman_two_state;
mod link_capacity;
mod loss_controller;
mod overuse_detector;
mod probe_controller;
mod probe_estimator;
mod queue_delay;
mod send_side_estimate;
mod tfrc;
mod trendline;

pub use acked_rate::{AckedRate, AckedRateConfig};
pub use adaptive_threshold::{AdaptiveThreshold, ThresholdConfig};
pub(crate) use burst_groups::rounded;
pub use burst_groups::{BurstConfig, BurstGroups};
pub use frame_groups::{Departure, FrameGroups};
pub use group_delta::GroupDelta;
pub use incoming_rate::IncomingRate;
pub use kalman::{KalmanConfig, ScalarKalman};
pub use kalman_two_state::{TwoStateConfig, TwoStateKalman};
pub use link_capacity::LinkCapacity;
pub use loss_controller::{LossConfig, LossController};
pub use overuse_detector::{OveruseDetector, Usage};
pub use probe_controller::{ProbeConfig, ProbeController};
pub use probe_estimator::ProbeEstimator;
pub use queue_delay::{BaseDelayConfig, QueueDelay};
pub use send_side_estimate::{SendSideConfig, SendSideEstimate};
pub use tfrc::tfrc;
pub use trendline::{Trendline, TrendlineConfig};
