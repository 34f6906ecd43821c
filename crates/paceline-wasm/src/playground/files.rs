// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the user: scenarios, and the recorded traces and constants that a scenario names.

use crate::playground::controls::Text;
use crate::playground::controls::{Change, edit};
use crate::playground::problem::Problem;
use paceline::Registry;
use paceline_scenario::{Call, CallPath, file_name};
use serde::{Deserialize, Serialize};

/// A file of the user.
#[derive(Clone, Debug, Deserialize)]
pub struct File {
    /// Name, without its folder.
    pub name: String,
    /// Content.
    pub text: String,
}

impl File {
    /// Returns whether it is meant as a scenario. A file with an error, too, so that its error is shown.
    fn is_scenario(&self) -> bool {
        match toml::from_str::<toml::Table>(&self.text) {
            Ok(table) => table.contains_key("flow") || table.contains_key("path"),
            Err(_) => self.name.ends_with(".toml"),
        }
    }
}

/// What follows from opened files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// The scenario with its files.
    pub text: Text,
    /// Whether it replaces the scenario before it.
    pub is_new: bool,
    /// What of a call over a trace is not measured.
    pub assumed: Option<String>,
}

/// Opens files: a scenario replaces the text, a file that the text names becomes one of its files, and over any other, which must be a trace,
/// a call under `controller` begins.
///
/// # Errors
/// A trace cannot be read, or the files do not belong together.
pub fn open(before: &Text, new: Vec<File>, controller: Option<String>, registry: &Registry) -> Result<Opened, Problem> {
    let problem = |name: &str, message: &str, hint: &str| Problem {
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        source: name.to_owned(),
        ..Problem::default()
    };
    let (scenarios, others): (Vec<File>, Vec<File>) = new.into_iter().partition(File::is_scenario);
    let is_new = !scenarios.is_empty();
    let mut text = match <[File; 1]>::try_from(scenarios) {
        Ok([File { name, text }]) => Text { name, text, ..Text::default() },
        Err(none) if none.is_empty() => before.clone(),
        Err(_) => {
            return Err(problem("", "these are several scenarios", "open one scenario, with the files that it names"));
        }
    };
    let names = text.origin().file_names();
    let is_named = |file: &File| names.iter().any(|name| file_name(name) == file.name);
    let (named, others): (Vec<File>, Vec<File>) = others.into_iter().partition(is_named);
    let is_part = is_new || !named.is_empty();
    text.files.extend(named.into_iter().map(|file| (file.name, file.text)));
    let Some(trace) = others.first() else { return Ok(Opened { text, is_new, assumed: None }) };
    if is_part || others.len() > 1 {
        let hint = "open one trace; or a scenario, with the files that it names";
        return Err(problem(&trace.name, "the scenario does not name this file", hint));
    }
    let CallPath { origin, assumed, .. } = CallPath::of_trace_text(&trace.name, &trace.text, &Call::default())?;
    let files = [(trace.name.clone(), trace.text.clone())].into();
    let mut text = Text { name: "call.toml".to_owned(), text: origin.text, files };
    if let Some(name) = controller {
        text.text = edit(&text, &Change::Controller(name), registry)?;
    }
    Ok(Opened { text, is_new: true, assumed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playground::start::FIRST;
    use paceline_scenario::{Changes, load};

    fn file(name: &str, text: &str) -> File {
        File { name: name.to_owned(), text: text.to_owned() }
    }

    fn opened(before: &str, files: &[(&str, &str)]) -> Result<Opened, Problem> {
        let before = Text { name: "call.toml".to_owned(), text: before.to_owned(), ..Text::default() };
        let files = files.iter().map(|(name, text)| file(name, text)).collect();
        open(&before, files, Some("nada".to_owned()), &Registry::standard())
    }

    /// The call over a trace is that of `choose`, under the chosen controller.
    #[test]
    fn each_trace_format_begins_a_call() {
        let registry = Registry::standard();
        for format in paceline_scenario::trace::FORMATS {
            let opened = opened(FIRST, &[("up.log", format.example)]).unwrap();
            assert!(opened.is_new && opened.assumed.unwrap().contains("queue of 0.6 s"), "{}", format.name);
            let scenario = load(&opened.text.origin(), &Changes::default(), &registry).unwrap();
            assert!(scenario.notes[0].contains(&format!("{} trace", format.name)), "{:?}", scenario.notes);
            assert_eq!(scenario.plan.flows[0].control(), "nada");
        }
        let error = opened(FIRST, &[("up.log", "5\n4\n")]).unwrap_err();
        assert!(error.message.contains("up.log, line 2: time goes back") && error.hint.is_some(), "{error:?}");
        assert!(opened(FIRST, &[("photo.txt", "hello")]).unwrap_err().hint.unwrap().contains("mahimahi"));
    }

    #[test]
    fn a_scenario_takes_the_files_that_it_names() {
        let traced = FIRST.replace(
            "[[\"0 s\", \"1 Mbps\"], [\"50 s\", \"2.5 Mbps\"], [\"100 s\", \"500 kbps\"], [\"150 s\", \"1 Mbps\"]]",
            "{ trace = \"traces/up.csv\" }",
        );
        assert_ne!(traced, FIRST);
        let load = |text: &Text| load(&text.origin(), &Changes::default(), &Registry::standard());
        let alone = opened(FIRST, &[("mine.toml", &traced)]).unwrap();
        let error = Problem::from(load(&alone.text).unwrap_err());
        assert_eq!((error.line, error.message.as_str()), (Some(10), "the file up.csv is missing"));
        assert_eq!(error.hint.as_deref(), Some("open this file, too"));
        // The missing file alone, later; or both together.
        let later = opened(&traced, &[("up.csv", "0,2500000\n10,1500000\n")]).unwrap();
        let both = opened(FIRST, &[("up.csv", "0,2500000\n10,1500000\n"), ("mine.toml", &traced)]).unwrap();
        assert_eq!((later.is_new, both.is_new, &later.text.files), (false, true, &both.text.files));
        assert_eq!(
            [&later, &both].map(|of| load(&of.text).map(|_| &of.text.name[..]).map_err(Problem::from)),
            [Ok("call.toml"), Ok("mine.toml")]
        );
        for files in [
            &[("a.toml", FIRST), ("b.toml", FIRST)][..],
            &[("a.toml", FIRST), ("up.csv", "0,1\n5,2\n")],
            &[("up.csv", "0,1\n5,2\n"), ("down.csv", "0,1\n5,2\n")],
        ] {
            let hint = opened(FIRST, files).unwrap_err().hint.unwrap();
            assert!(hint.contains("open one"), "{hint}");
        }
        let broken = opened(FIRST, &[("mine.toml", "]")]).unwrap();
        assert_eq!(load(&broken.text).unwrap_err().line(), Some(1));
    }
}
