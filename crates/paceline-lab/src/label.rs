//! What a case of an experiment is called.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Names and values that tell a case from the others of its experiment, such as `threshold = "static"`; empty where an
/// experiment has no cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Label(BTreeMap<String, String>);

impl Label {
    /// Says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every name with its value.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Says all that `pattern` says.
    pub fn says(&self, pattern: &Self) -> bool {
        pattern.0.iter().all(|(name, value)| self.0.get(name) == Some(value))
    }

    /// This, except for what `other` says.
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

/// One `name=value`.
impl FromStr for Label {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok([(name.trim().to_owned(), value.trim().to_owned())].into_iter().collect())
            }
            _ => Err(format!("`{text}` is not NAME=VALUE, such as threshold=static")),
        }
    }
}

/// `threshold=static rtt=50ms`.
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
    fn a_label_says_what_it_contains() {
        let case = label(&["threshold=static", "rtt=50ms"]);
        assert_eq!(case.to_string(), "rtt=50ms threshold=static");
        assert!(case.says(&label(&["threshold=static"])) && case.says(&Label::default()) && case.says(&case));
        assert!(!case.says(&label(&["threshold=adaptive"])) && !case.says(&label(&["queue=150ms"])));
        assert!(!Label::default().says(&label(&["rtt=50ms"])));
        assert_eq!(case.with(&label(&["threshold=adaptive"])), label(&["threshold=adaptive", "rtt=50ms"]));
        assert!("static".parse::<Label>().is_err());
    }
}
