//! What is wrong with a scenario, where, and what to write instead.

use miette::{Diagnostic, NamedSource, SourceSpan};
use std::ops::Range;

/// A complaint about a scenario file or a change to it.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Problem {
    message: String,
    #[source_code]
    file: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
    #[help]
    help: Option<String>,
}

impl Problem {
    /// `message` about the text at `span` of the file `name`.
    pub(crate) fn at(name: &str, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        // A span of nothing is widened to one character, so that there is something to underline.
        let end = span.end.max(span.start + 1).min(text.len().max(span.start));
        Self {
            message: message.into(),
            file: NamedSource::new(name, text.to_owned()).with_language("toml"),
            span: Some((span.start..end).into()),
            help: None,
        }
    }

    /// `message` about something that stands nowhere in the file.
    pub(crate) fn of(name: &str, text: &str, message: impl Into<String>) -> Self {
        let mut problem = Self::at(name, text, 0..0, message);
        problem.span = None;
        problem
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says that the text complained of includes changes.
    pub(crate) fn after_changes(mut self, changes: &[String]) -> Self {
        if !changes.is_empty() {
            let list = changes.join(" ");
            let note = format!("the text above includes {list}");
            let named = format!("{} with {list}", self.file.name());
            self.file = NamedSource::new(named, self.file.inner().clone()).with_language("toml");
            self.help = Some(self.help.map_or(note.clone(), |help| format!("{help}\n{note}")));
        }
        self
    }

    /// The line of the complaint, from 1.
    pub fn line(&self) -> Option<usize> {
        let offset = self.span.as_ref()?.offset();
        Some(self.file.inner()[..offset].matches('\n').count() + 1)
    }

    /// What to write instead.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The offending text.
    pub fn offending(&self) -> Option<&str> {
        let span = self.span.as_ref()?;
        self.file.inner().get(span.offset()..span.offset() + span.len())
    }
}

/// The name in `known` that `name` was probably meant to be.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|k| (strsim::jaro_winkler(&name.to_lowercase(), &k.to_lowercase()), k));
    scored.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, k)| k)
}

/// What to write in place of a controller that is not known.
pub fn no_controller(name: &str, known: &[&str]) -> String {
    let near = suggestion(name, known);
    // A browser's own controllers are only where a browser is.
    let of_browsers = name.starts_with("chromium") && !known.iter().any(|known| known.starts_with("chromium"));
    if of_browsers {
        format!("a browser's own controllers are in the world `browser`: --world browser. Else: {near}")
    } else {
        near
    }
}

/// "did you mean ...?", and the list of what there is: for any name that is not known.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let list = || known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Known: {}", list()),
        None => format!("known: {}", list()),
    }
}
