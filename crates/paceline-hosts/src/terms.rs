//! The terms of a session: what both ends must know to build the endpoints of a flow.

use crate::message::TERMS_MAX;
use paceline_units::{Rate, TimeDelta};
use serde::{Deserialize, Serialize};

/// Maximum rate of all flows of a session in one direction: above it, packets do not leave as paced.
const RATE_MAX: u64 = 10_000_000_000;

/// Maximum duration of a session.
const DURATION_MAX_MS: u64 = 3_600_000;

/// Maximum number of flows in each direction.
pub const FLOWS_MAX: u16 = 256;

/// Maximum length of a name, bytes.
const NAME_MAX: usize = 64;

/// The terms, which a sender proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Name of the controller.
    pub controller: String,
    /// Name of the source.
    pub source: String,
    /// First target, bit/s.
    pub start_bps: u64,
    /// Lowest target, bit/s.
    pub min_bps: u64,
    /// Highest rate of the source, bit/s.
    pub max_bps: u64,
    /// Duration of the media, ms.
    pub duration_ms: u64,
    /// Seed of the random streams of both ends.
    pub seed: u64,
    /// Number of flows in each direction that has any.
    pub flows: u16,
    /// Whether the receiver sends as many flows, too.
    pub both: bool,
    /// Whether a TCP flow from sender to receiver runs beside them.
    pub tcp: bool,
}

impl Terms {
    /// Returns the bytes for a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and names are JSON")
    }

    /// Reads terms and checks their bounds; `None` if they are not acceptable.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let terms: Self = (bytes.len() <= TERMS_MAX).then(|| serde_json::from_slice(bytes).ok()).flatten()?;
        terms.problem().is_none().then_some(terms)
    }

    /// Returns what is wrong with the terms; `None` if they are acceptable.
    pub fn problem(&self) -> Option<&'static str> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= NAME_MAX
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        match self {
            _ if !is_name(&self.controller) || !is_name(&self.source) => {
                Some("names have up to 64 letters, digits, `-`, `_` and `.`")
            }
            _ if self.min_bps == 0 || self.min_bps > self.start_bps || self.start_bps > self.max_bps => {
                Some("rates must be above zero, and the start rate must be from the lowest to the highest rate")
            }
            _ if self.total_bps() > RATE_MAX => {
                Some("the highest rate of all flows together must be at most 10 Gbit/s")
            }
            _ if !(1..=FLOWS_MAX).contains(&self.flows) => Some("the number of flows must be from 1 to 256"),
            _ if !(1000..=DURATION_MAX_MS).contains(&self.duration_ms) => Some("the duration must be from 1 s to 1 h"),
            _ => None,
        }
    }

    /// Returns the highest rate of all flows of a direction together, bit/s.
    pub fn total_bps(&self) -> u64 {
        self.max_bps.saturating_mul(self.flows.into())
    }

    /// Returns the duration of the media.
    pub fn duration(&self) -> TimeDelta {
        TimeDelta::from_millis(self.duration_ms as i64)
    }

    /// Returns the highest rate of the source.
    pub fn max(&self) -> Rate {
        Rate::from_bps(self.max_bps)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn terms() -> Terms {
        Terms {
            controller: "googcc".to_owned(),
            source: "encoder".to_owned(),
            start_bps: 300_000,
            min_bps: 30_000,
            max_bps: 2_000_000,
            duration_ms: 10_000,
            seed: u64::MAX,
            flows: 1,
            both: false,
            tcp: false,
        }
    }

    #[test]
    fn terms_survive_writing_and_reading() {
        assert_eq!(Terms::from_bytes(&terms().to_bytes()), Some(terms()));
        let longest = "x".repeat(NAME_MAX);
        let long = Terms { controller: longest.clone(), source: longest, ..terms() };
        assert!(long.to_bytes().len() <= TERMS_MAX && Terms::from_bytes(&long.to_bytes()).is_some());
    }

    #[test]
    fn terms_outside_the_bounds_are_refused() {
        let changes: [fn(&mut Terms); 11] = [
            |t| t.flows = 0,
            |t| t.flows = FLOWS_MAX + 1,
            |t| t.controller = "a\"b".to_owned(),
            |t| t.source = String::new(),
            |t| t.source = "x".repeat(NAME_MAX + 1),
            |t| t.start_bps = t.max_bps + 1,
            |t| t.min_bps = 0,
            |t| t.max_bps = RATE_MAX + 1,
            |t| (t.max_bps, t.flows) = (RATE_MAX / 2 + 1, 2),
            |t| t.duration_ms = DURATION_MAX_MS + 1,
            |t| t.duration_ms = 999,
        ];
        for change in changes {
            let mut changed = terms();
            change(&mut changed);
            assert_eq!(Terms::from_bytes(&changed.to_bytes()), None, "{changed:?}");
        }
        let longest = Terms { duration_ms: DURATION_MAX_MS, max_bps: RATE_MAX, ..terms() };
        assert!(longest.problem().is_none());
        assert_eq!(Terms::from_bytes(b"{}"), None);
    }
}
