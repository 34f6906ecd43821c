// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a suite's manifest, `NAME.suite.toml`, and of the verdicts that it expects, `NAME.expected.toml`.

use crate::results::{Looks, Scale};
use paceline_scenario::{Catalogue, EXPECTED, Origin, Override, SUITE, ScenarioError, Spanned, parse};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The name that stands for the short suites: those of the catalogue with few runs of some tests, whose mean scores are about those of all runs
/// of all tests. Tests whose scores do not count are left out.
pub const SHORT: &str = "short";
/// What follows the id of one of them.
const SHORT_SUFFIX: &str = ":short";
/// The number of runs of each case in a short suite, if its manifest gives none.
const SHORT_REPEATS: u64 = 3;

/// The highest number of runs of each case.
const REPEATS: core::ops::RangeInclusive<u64> = 1..=Looks::MOST;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    /// Its id: the name of the file up to `.suite.toml`.
    id: Spanned<String>,
    title: String,
    /// The document that it follows.
    #[serde(default)]
    source: String,
    /// The kind of paths, by which the leaderboard groups suites; its id if absent.
    #[serde(default)]
    family: String,
    /// Controllers whose developers chose values or looked at results with it.
    #[serde(default)]
    developed: Vec<String>,
    /// The highest number of runs of each case.
    #[serde(default)]
    repeats: Option<Spanned<u64>>,
    /// The scenarios: files beside the manifest, or ids of the catalogue.
    scenarios: Vec<Spanned<String>>,
    /// The number of runs of each case in the [short suite](SHORT).
    #[serde(default)]
    short_repeats: Option<Spanned<u64>>,
    /// The tests of the short suite; if absent, all whose scores count.
    #[serde(default)]
    short_tests: Vec<Spanned<String>>,
}

/// A suite: scenarios whose bounds judge controllers.
#[derive(Clone, Debug)]
pub struct Suite {
    pub id: String,
    pub title: String,
    /// The document that it follows; empty if it follows none.
    pub source: String,
    /// The kind of paths, by which the leaderboard groups suites.
    pub family: String,
    /// Controllers whose developers chose values or looked at results with it.
    pub developed: Vec<String>,
    /// The highest number of runs of each case.
    pub repeats: u64,
    /// The scenarios, each with bounds.
    pub scenarios: Vec<Origin>,
    /// The number of runs of each case in its short form.
    pub short_repeats: u64,
    /// The names of the tests of its short form.
    pub short_tests: BTreeSet<String>,
    /// The names of its tests; `None`: each case of each scenario is one.
    pub tests: Option<BTreeSet<String>>,
    pub settings: Vec<Override>,
    /// The verdicts that it expects; `None` without a file of them.
    pub expected: Option<Expected>,
    /// The path of that file; `None` for a suite of the catalogue.
    pub expected_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The number of runs of each case for which they hold.
    pub repeats: u64,
    /// Whether it is the highest number, and each case has as many as its verdicts need.
    #[serde(default)]
    pub sequential: bool,
    /// The bounds that fail, by controller. The others of these controllers hold or are undecided.
    pub fails: BTreeMap<String, BTreeSet<String>>,
    /// The mean score of each test under a constant rate and under the oracle: the ends of its scale.
    #[serde(default)]
    pub scale: BTreeMap<String, (f64, f64)>,
}

impl Expected {
    pub fn text(&self, id: &str) -> String {
        let mut text = format!(
            "# The bounds that fail under each controller; the others hold or are undecided. `paceline suite {id}.suite.toml --accept` writes this file.\n\
             repeats = {}\n{}\n[fails]\n",
            self.repeats,
            if self.sequential { "sequential = true\n" } else { "" }
        );
        for (controller, fails) in &self.fails {
            text += &format!("{controller} = [");
            for bound in fails {
                text += &format!("\n    {},", toml_text(bound));
            }
            text += if fails.is_empty() { "]\n" } else { "\n]\n" };
        }
        if !self.scale.is_empty() {
            text += "\n# The score of each test under a constant rate and under the oracle `causal`.\n[scale]\n";
        }
        for (test, (zero, hundred)) in &self.scale {
            text += &format!("{} = [{zero:.1}, {hundred:.1}]\n", toml_text(test));
        }
        text
    }
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Suite {
    /// Loads the suite of this id, or of this file. An id with `:short` is that of its short form.
    ///
    /// # Errors
    /// There is no such suite, its manifest is invalid, or a scenario is missing. Scenarios are checked when they are run.
    pub fn find(name: &str) -> Result<Self, ScenarioError> {
        match name.strip_suffix(SHORT_SUFFIX) {
            Some(id) => Ok(Self::load(&Catalogue.find_suite(id)?)?.shortened()),
            None => Self::load(&Catalogue.find_suite(name)?),
        }
    }

    /// Returns the name by which a suite is found alone that was found by `given`.
    pub fn own_name(&self, given: &str) -> String {
        match given {
            super::ALL => self.id.clone(),
            SHORT => format!("{}{SHORT_SUFFIX}", self.id),
            given => given.to_owned(),
        }
    }

    /// Returns the short form. It expects no verdicts, and keeps the scale of scores.
    fn shortened(mut self) -> Self {
        self.title += " [short]";
        self.repeats = self.short_repeats;
        self.expected_file = None;
        let has_test = |name: &str| {
            let case =
                |test: &String| test.strip_prefix(name).is_some_and(|case| case.is_empty() || case.starts_with(' '));
            self.short_tests.iter().any(case)
        };
        self.scenarios.retain(|origin| has_test(origin.argument()));
        self.tests = Some(self.short_tests.clone());
        if let Some(expected) = &mut self.expected {
            (expected.repeats, expected.sequential) = (self.repeats, true);
            expected.fails.clear();
        }
        self
    }

    /// Loads the suites of these names, each once; [`ALL`](super::ALL) stands for those of the catalogue, [`SHORT`] for their short forms.
    pub fn find_all(names: &[String]) -> Result<Vec<Self>, ScenarioError> {
        let mut found: Vec<Self> = Vec::new();
        for name in names {
            let names = match name.as_str() {
                super::ALL => Catalogue.suites().map(str::to_owned).collect(),
                SHORT => Catalogue.suites().map(|id| format!("{id}{SHORT_SUFFIX}")).collect(),
                name => vec![name.to_owned()],
            };
            for name in names {
                let suite = Self::find(&name)?;
                if found.iter().all(|other| other.id != suite.id) {
                    found.push(suite);
                }
            }
        }
        Ok(found)
    }

    /// Loads the suite of this manifest.
    pub fn load(origin: &Origin) -> Result<Self, ScenarioError> {
        let SuiteFile { id, title, source, family, developed, repeats, scenarios, short_repeats, short_tests } =
            parse(&origin.name, &origin.text)?;
        let stem = origin.name.rsplit(['/', '\\']).next().and_then(|file| file.strip_suffix(SUITE));
        if let Some(stem) = stem.filter(|stem| stem != id.get()) {
            let help = format!("write id = \"{stem}\", or rename the file to {}{SUITE}", id.get());
            return Err(origin.error_at(&id, format!("the id `{}` differs from the name of the file", id.get()), help));
        }
        for (key, repeats) in [("repeats", &repeats), ("short_repeats", &short_repeats)] {
            if let Some(repeats) = repeats.as_ref().filter(|repeats| !REPEATS.contains(repeats.get())) {
                let message = format!("{key} must be from {} to {}", REPEATS.start(), REPEATS.end());
                let help = "it is the highest number of runs of a test; `suite --repeats` makes a fixed number";
                return Err(origin.error_at(repeats, message, help));
            }
        }
        let mut origins: Vec<Origin> = Vec::new();
        for name in &scenarios {
            let found = origin.scenario(name.get()).map_err(|error| {
                let help = error.hint().unwrap_or_default().to_owned();
                origin.error_at(name, error.to_string(), help)
            })?;
            if origins.iter().any(|other| other.argument() == found.argument()) {
                let message = format!("the scenario `{}` is listed twice", name.get());
                return Err(origin.error_at(name, message, "list each scenario once"));
            }
            origins.push(found);
        }
        if origins.is_empty() {
            let help = "list ids of the catalogue or files beside the manifest: scenarios = [\"rfc8867/5.1\"]";
            return Err(origin.error("a suite needs scenarios", help));
        }
        let expected_name = format!("{}{EXPECTED}", id.get());
        let text = origin.read(&expected_name).ok();
        let expected = text.map(|text| parse::<Expected>(&expected_name, &text)).transpose()?;
        let scale = || expected.iter().flat_map(|expected| &expected.scale);
        let counted: BTreeSet<String> =
            scale().filter(|(_, ends)| Scale::from(**ends).counts()).map(|(test, _)| test.clone()).collect();
        if let Some(test) = short_tests.iter().find(|test| !counted.contains(test.get())) {
            let message = format!("short_tests has `{}`, which has no score that counts", test.get());
            return Err(origin.error_at(
                test,
                message,
                format!("list tests of {expected_name} that allow 5 points or more"),
            ));
        }
        Ok(Self {
            expected_file: origin.beside(&expected_name),
            id: id.get().clone(),
            title,
            source,
            family: if family.is_empty() { id.get().clone() } else { family },
            developed,
            repeats: repeats.map_or(Looks::MOST, |repeats| *repeats.get()),
            scenarios: origins,
            short_repeats: short_repeats.map_or(SHORT_REPEATS, |repeats| *repeats.get()),
            short_tests: if short_tests.is_empty() {
                counted
            } else {
                short_tests.iter().map(|test| test.get().clone()).collect()
            },
            tests: None,
            settings: Vec::new(),
            expected,
        })
    }
}
