// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of the page and their answers.

use crate::playground::controls::{self, Change, Controls, Text};
use crate::playground::files::{self, File, Opened};
use crate::playground::problem::Problem;
use crate::playground::run::{self, RunAnswer};
use crate::playground::start::{self, Start};
use paceline::Registry;
use paceline_scenario::Catalogue;
use serde::{Deserialize, Serialize};

/// A request of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// What the page offers.
    Start,
    /// The text of a shipped scenario, or of a call over a preset of the path.
    Open(String),
    /// The positions of the controls for a text.
    Read(Text),
    /// A text with one change.
    Edit(Text, Change),
    /// Opens files of the user: the text before them, the files, and the controller of a call over a trace.
    Files(Text, Vec<File>, Option<String>),
    /// One run.
    Run {
        /// The scenario.
        text: Text,
        /// The controller of every media flow; those of the text if absent.
        controller: Option<String>,
        /// The seed.
        seed: u64,
    },
}

/// An answer; its JSON has one key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What the page offers.
    Start(Box<Start>),
    /// A text.
    Text(String),
    /// The positions of the controls.
    Controls(Box<Controls>),
    /// A changed text, and the positions of the controls for it.
    Edited(String, Box<Controls>),
    /// The text after files were opened.
    Opened(Opened),
    /// A run.
    Run(Box<RunAnswer>),
    /// The request failed.
    Error(Problem),
}

/// Answers a request, both encoded as the crate describes.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let mut columns = Vec::new();
    let answered = serde_json::from_slice(request)
        .map_err(|error| Problem::from(format!("the request cannot be read: {error}")))
        .and_then(|request| handle(request, &mut columns));
    let json = serde_json::to_vec(&answered.unwrap_or_else(Answer::Error)).expect("an answer is JSON");
    let length = u32::try_from(json.len()).expect("an answer has less than 4 GiB");
    let columns = columns.iter().flat_map(|value: &f32| value.to_le_bytes());
    length.to_le_bytes().into_iter().chain(json).chain(columns).collect()
}

fn handle(request: Request, columns: &mut Vec<f32>) -> Result<Answer, Problem> {
    let registry = Registry::standard();
    Ok(match request {
        Request::Start => Answer::Start(Box::new(start::start(&registry))),
        Request::Open(id) => Answer::Text(start::open(&id, Catalogue)?),
        Request::Read(text) => Answer::Controls(Box::new(controls::read(&text, &registry)?)),
        Request::Edit(text, change) => {
            let text = Text { text: controls::edit(&text, &change, &registry)?, ..text };
            let controls = controls::read(&text, &registry)?;
            Answer::Edited(text.text, Box::new(controls))
        }
        Request::Files(text, new, controller) => Answer::Opened(files::open(&text, new, controller, &registry)?),
        Request::Run { text, controller, seed } => {
            Answer::Run(Box::new(run::run(&text, controller, seed, &registry, columns)?))
        }
    })
}
