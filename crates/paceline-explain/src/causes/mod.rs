// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes: one file each, and a line in [`CAUSES`].
//!
//! A cause examines an episode and returns its evidence, or nothing. The order of [`CAUSES`] decides between causes with evidence
//! of equal strength: first what stops packets or reports, then what changes the path, then what limits the rate from above, then
//! what fills or drops. Named thresholds have their source, or are marked as assumed; factors within expressions are assumed too.
//! Assumed values were chosen on generated captures (`tests/it/generator`), without the test half.

mod application;
mod congestion_marks;
mod congestive_loss;
mod cpu;
mod cross_traffic;
mod delay_bursts;
mod feedback;
mod outage;
mod own_queue;
mod policer;
mod probe;
mod random_loss;
mod rate_cap;
mod route_change;
mod rtt_backoff;

use crate::facts::{Facts, LOSS, LOST_MIN};
use crate::model::Quantity;
use paceline_units::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// A cause of a drop or a plateau.
pub struct Cause {
    /// Name in JSON, such as `own-queue`.
    pub id: &'static str,
    /// Name for people, a colon, and what happened in a clause.
    pub title: &'static str,
    /// What to try.
    pub advice: &'static str,
    /// Returns the evidence that this is the cause of an episode.
    pub examine: fn(&Facts<'_>) -> Option<Evidence>,
}

/// How strong evidence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// Another cause would look alike.
    Weak,
    /// Other causes rarely look like this.
    Strong,
}

/// Evidence for a cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// How strong it is.
    pub strength: Strength,
    /// The observation, with its numbers.
    pub text: String,
    /// The series in which it shows.
    pub series: Vec<Quantity>,
    /// The span in which it shows.
    pub span: (Time, Time),
}

/// Every cause, in order of precedence.
pub const CAUSES: &[&Cause] = &[
    &rtt_backoff::CAUSE,
    &outage::CAUSE,
    &feedback::CAUSE,
    &route_change::CAUSE,
    &cpu::CAUSE,
    &application::CAUSE,
    &rate_cap::CAUSE,
    &congestion_marks::CAUSE,
    &policer::CAUSE,
    &delay_bursts::CAUSE,
    &cross_traffic::CAUSE,
    &congestive_loss::CAUSE,
    &own_queue::CAUSE,
    &random_loss::CAUSE,
    &probe::CAUSE,
];

/// The id of an episode without evidence for any cause.
pub const UNKNOWN: &str = "unknown";

/// Returns the cause with this id.
pub fn find(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().copied().find(|cause| cause.id == id)
}

/// A rise of the lower end of delays above this is a queue. Assumed: twice the delay that libwebrtc's detector tolerates at least
/// (threshold 6 ms, `trendline_estimator.cc`).
const QUEUE: f64 = 0.012;
/// For round-trip times of statistics. Assumed: they also contain the delays of RTCP at both ends.
const QUEUE_RTT: f64 = 0.02;
/// A source that pauses or is muted leaves at most this share of the rate. Assumed: audio and black pictures beside video.
const PAUSED: f64 = 0.15;

/// The share of lost packets from which libwebrtc's loss-based control lowers the rate (`send_side_bandwidth_estimation.cc`).
const MUCH: f64 = 0.1;

/// Formats a rate.
pub(crate) fn rate(bps: f64) -> String {
    if bps >= 1e6 { format!("{:.2} Mbit/s", bps / 1e6) } else { format!("{:.0} kbit/s", bps / 1e3) }
}

/// Formats seconds as milliseconds, and long times as seconds.
fn ms(seconds: f64) -> String {
    if seconds >= 10.0 { format!("{seconds:.0} s") } else { format!("{:.0} ms", seconds * 1e3) }
}

/// Formats a share.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns the least rise that counts as a queue for these delays.
fn queue_threshold(delays: &crate::facts::Delays) -> f64 {
    if delays.is_one_way { QUEUE } else { QUEUE_RTT.max(0.5 * delays.jitter) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn titles_have_a_clause_and_name_no_technology_that_inputs_do_not_show() {
        for cause in super::CAUSES {
            let clause = cause.title.split_once(": ").map_or("", |(_, clause)| clause);
            assert!(clause.contains(' ') && !clause.ends_with('.'), "{}", cause.title);
            assert!(!cause.title.contains("Wi-Fi"), "{}", cause.title);
        }
    }

    #[test]
    fn long_times_are_in_seconds() {
        assert_eq!(
            (super::ms(0.25), super::ms(9.0), super::ms(187.0)),
            ("250 ms".into(), "9000 ms".into(), "187 s".into())
        );
    }
}
