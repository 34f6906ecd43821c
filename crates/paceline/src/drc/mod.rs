//! `drc`, delivery-rate control: the rate follows what the link delivers while a queue exceeds its reference, and grows while none does.
//!
//! ```text
//!            ┌─ DeliveryRate ─ D ──────────┐
//! feedback ──┼─ QueueDelay ─ q, jitter ────┼─▶ equations ─┬─▶ rate ─▶ target, window, pacing
//!            ├─ marks ─ alpha ─────────────┘              │
//!            ├─ StandingQueue ─ rate of a competing flow ─┤
//!            └─ ExcessLoss ───────────────────────────────┘
//! ```
//!
//! `docs/algorithms/drc.md` derives it and lists its weaknesses.

mod config;
mod delivery;
mod equations;
mod history;
mod loss;
mod report;
mod sender;
mod standing;

pub use config::DrcConfig;
pub use delivery::DeliveryRate;
pub use history::{History, Past};
pub use loss::ExcessLoss;
pub(crate) use sender::entry;
pub use standing::{Observation, StandingQueue};
