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

/// As it is displayed: one `name=value`, or several with blanks or commas between. Values may have blanks of their own, so
/// what begins another is a word with `=`.
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
    }

    #[test]
    fn several_in_one() {
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
