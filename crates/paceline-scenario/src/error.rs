// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error type of scenario files, and the search for names that resemble an unknown one.

use miette::{Diagnostic, NamedSource, SourceSpan};
use std::ops::Range;

/// An error in a scenario file or in a change to it.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct ScenarioError {
    message: String,
    #[source_code]
    source_text: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
    #[help]
    help: Option<String>,
    /// The layer that set the value; the last line of the help.
    layer: Option<String>,
}

impl ScenarioError {
    /// Returns an error about the text at `span` of the file `name`.
    pub fn at(name: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        // An empty span is widened to one character so that something is underlined.
        let end = span.end.max(span.start + 1).min(text.len().max(span.start));
        Self { span: Some((span.start..end).into()), ..Self::of(name, text, message) }
    }

    /// Returns an error about something that is missing from the file `name`.
    pub fn of(name: &str, text: &str, message: impl Into<String>) -> Self {
        let source_text = NamedSource::new(name, text.to_owned()).with_language("toml");
        Self { message: message.into(), source_text, span: None, help: None, layer: None }
    }

    /// Returns the error with a hint.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        let help = help.into();
        self.help = Some(match &self.layer {
            Some(layer) if !help.is_empty() => format!("{help}\n{layer}"),
            Some(layer) => layer.clone(),
            None => help,
        });
        self
    }

    /// Returns the error with a line on the layer that set the value, unless it already has one.
    pub(crate) fn with_layer(mut self, layer: impl FnOnce() -> Option<String>) -> Self {
        if self.layer.is_some() {
            return self;
        }
        self.layer = layer();
        let help = self.help.take().unwrap_or_default();
        if self.layer.is_none() && help.is_empty() { self } else { self.help(help) }
    }

    /// Returns the line of the error, from 1.
    pub fn line(&self) -> Option<usize> {
        let offset = self.span.as_ref()?.offset();
        Some(self.source_text.inner()[..offset].matches('\n').count() + 1)
    }

    /// Returns the column at which the error begins, in characters from 1.
    pub fn column(&self) -> Option<usize> {
        let before = &self.source_text.inner()[..self.span.as_ref()?.offset()];
        Some(before.rsplit('\n').next().unwrap_or(before).chars().count() + 1)
    }

    /// Returns the hint to correct the error.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the underlined text.
    pub fn offending(&self) -> Option<&str> {
        let span = self.span.as_ref()?;
        self.source_text.inner().get(span.offset()..span.offset() + span.len())
    }

    /// Returns the name of the file, or `--set`, that holds the underlined text.
    pub fn source_name(&self) -> &str {
        self.source_text.name()
    }
}

/// Returns the name in `known` that resembles `name` most, if any does.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    similar(name, known).first().copied()
}

/// Returns the names in `known` that resemble `name`, the most similar first.
fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    by_similarity(name, known, 0.75)
}

/// Returns the names in `known` that are more similar to `name` than `least`, from 0 to 1, the most similar first.
fn by_similarity<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, least: f64) -> Vec<&'a str> {
    let scored = known.into_iter().map(|k| (strsim::jaro_winkler(&name.to_lowercase(), &k.to_lowercase()), k));
    let mut scored: Vec<_> = scored.filter(|(score, _)| *score > least).collect();
    // Of equally similar names the last, as ids with a number have it.
    scored.reverse();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, k)| k).collect()
}

/// Returns the hint for an unknown controller.
pub fn no_controller(name: &str, known: &[&str]) -> String {
    if name.starts_with("exec:") || name.starts_with("lib:") {
        return "a file starts a program or loads a library only with the option --allow-exec".to_owned();
    }
    let near = and(nearest_of_many(name, known), "`paceline list controllers` shows all");
    // A browser's own controllers exist only in the browser.
    let of_browsers = name.starts_with("chromium") && !known.iter().any(|known| known.starts_with("chromium"));
    if of_browsers {
        format!("a browser's own controllers are in the world `browser`: --world browser. Else: {near}")
    } else {
        near
    }
}

/// More names than this are no list to read.
const LISTED: usize = 12;

/// Returns the hint for an unknown name of many that a command lists: the nearest three, if none is similar.
pub fn nearest_of_many(name: &str, known: &[&str]) -> String {
    if known.len() <= LISTED || !similar(name, known.iter().copied()).is_empty() {
        return suggestion(name, known);
    }
    let near = by_similarity(name, known.iter().copied(), -1.0);
    format!("the nearest of {}: {}", known.len(), backticked(&near[..3]))
}

fn backticked(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Joins two sentences of a hint.
pub fn and(first: String, second: &str) -> String {
    format!("{first}{} {second}", if first.ends_with('?') { "" } else { ";" })
}

/// Returns the hint for any unknown name: the most similar known names, and the list of known names if it is short.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let list = backticked;
    let near = similar(name, known.iter().copied());
    match (near.first(), known.len()) {
        (_, 0) => "there are none".to_owned(),
        (Some(near), ..=LISTED) => format!("did you mean `{near}`? Known: {}", list(known)),
        (Some(first), _) if near.len() == 1 => format!("did you mean `{first}`?"),
        (Some(first), _) => format!("did you mean `{first}`? Similar: {}", list(&near[1..near.len().min(3)])),
        (None, _) => format!("known: {}", list(known)),
    }
}
