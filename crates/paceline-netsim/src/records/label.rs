// SPDX-License-Identifier: MIT OR Apache-2.0
//! The label of a case of an experiment.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Names and values that distinguish a case from the others of its experiment, such as `threshold = "static"`; empty
/// for an experiment without cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Label(BTreeMap<String, String>);

impl Label {
    /// Returns whether the label has no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns every name with its value.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether the label contains every pair of `pattern`.
    pub fn matches(&self, pattern: &Self) -> bool {
        pattern.0.iter().all(|(name, value)| self.0.get(name) == Some(value))
    }

    /// Returns this label with the pairs of `other` added; on equal names `other` wins.
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.0.extend(other.0.clone());
        both
    }
}

impl FromIterator<(String, String)> for Label {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Parses the output of `Display`: `name=value` pairs, separated by blanks or commas. A value may contain blanks, so a
/// new pair begins at each word that contains `=`.
impl FromStr for Label {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let between = |c: char| c == ',' || c.is_whitespace();
        let mut parts: Vec<String> = Vec::new();
        for word in text.split_inclusive(between) {
            match parts.last_mut() {
                Some(part) if !word.contains('=') || !part.contains('=') => part.push_str(word),
                _ => parts.push(word.to_owned()),
            }
        }
        let pair = |part: &String| {
            let (name, value) = part.split_once('=')?;
            let (name, value) = (name.trim_matches(between), value.trim_matches(between));
            (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let pairs = parts.iter().map(pair).collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty());
        pairs.map(Self::from_iter).ok_or_else(|| format!("`{text}` is not NAME=VALUE, such as threshold=static"))
    }
}

/// Writes `threshold=static rtt=50ms`.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&pairs.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(pairs: &[&str]) -> Label {
        pairs.iter().fold(Label::default(), |l, p| l.with(&p.parse().unwrap()))
    }

    #[test]
    fn a_label_matches_its_subsets() {
        let case = label(&["threshold=static", "rtt=50ms"]);
        assert_eq!(case.to_string(), "rtt=50ms threshold=static");
        assert!(case.matches(&label(&["threshold=static"])) && case.matches(&Label::default()) && case.matches(&case));
        assert!(!case.matches(&label(&["threshold=adaptive"])) && !case.matches(&label(&["queue=150ms"])));
        assert!(!Label::default().matches(&label(&["rtt=50ms"])));
        assert_eq!(case.with(&label(&["threshold=adaptive"])), label(&["threshold=adaptive", "rtt=50ms"]));
    }

    #[test]
    fn parses_several_pairs() {
        let one = |text: &str| text.parse::<Label>();
        let both = label(&["queue=150 ms", "rtt=50ms"]);
        for text in [
            "queue=150 ms rtt=50ms",
            "queue = 150 ms,rtt=50ms",
            " rtt=50ms, queue=150 ms,",
            "rtt=9 queue=150 ms rtt=50ms",
        ] {
            assert_eq!(one(text).as_ref(), Ok(&both), "{text}");
        }
        assert_eq!(one(&both.to_string()), Ok(both));
        assert_eq!(one("flows=1,2"), Ok(label(&["flows=1,2"])));
        assert_eq!(one("rtt="), Ok([("rtt".to_owned(), String::new())].into_iter().collect()));
        for text in ["static", "", "=5", "rtt=50ms =5", ","] {
            assert!(one(text).is_err(), "{text}");
        }
    }
}
