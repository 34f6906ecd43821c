// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers outside the program: `exec:COMMAND` is a process that speaks JSON lines ([`protocol`]), `lib:PATH` a shared
//! library with a table of functions ([`paceline_abi::PacelineControllerV1`]).
//!
//! [`entry`] makes a registry entry of such a name. The failure of a half ends the run of its flow.
//!
//! A program is started once to read its hello, and once for each flow of each run. Equal answers give equal trace hashes:
//! the lines contain simulated time alone, and how long an answer takes changes nothing.

mod declared;
mod exec;
mod failure;
#[cfg(target_os = "linux")]
mod guard;
mod half;
mod library;
mod process;
pub mod protocol;
mod timer;

pub use exec::{Program, ProgramHalf};
pub use failure::{Cause, LastLines};
pub use half::ExternalHalf;
pub use process::{Channel, end_all};

use declared::{Declared, interned};
use library::{LibraryController, LibraryHalf};
use paceline::{Config, Controller, Entry, FieldInfo, FieldVisitor, Parameters, Registry, Setup, SignalTables};
use process::Process;
use protocol::Hello;
use std::sync::Arc;

/// The beginning of the name of a program.
pub const EXEC: &str = "exec:";
/// The beginning of the name of a shared library.
pub const LIB: &str = "lib:";

/// Returns whether this is the name of an external controller.
pub fn is_external(name: &str) -> bool {
    name.starts_with(EXEC) || name.starts_with(LIB)
}

/// An external controller that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the controller `{name}` {cause}{}", below(messages))]
pub struct ExternalError {
    pub name: String,
    /// What went wrong.
    pub cause: Cause,
    /// The last lines on its standard error.
    pub messages: Vec<String>,
}

/// Returns the messages of a program below an error.
fn below(messages: &[String]) -> String {
    if messages.is_empty() { String::new() } else { format!("\n{}", LastLines(messages.to_vec())) }
}

/// Makes the registry entry of an external controller: starts the program and reads its hello, or loads the library, which
/// runs its code.
///
/// # Errors
/// The name is not valid, or the program does not start or does not introduce itself, or the library does not load or has no
/// valid table.
pub fn entry(name: &str) -> Result<Entry, ExternalError> {
    let error = |cause: Cause, messages| ExternalError { name: name.to_owned(), cause, messages };
    let static_name = interned(name);
    let source = match name.strip_prefix(LIB) {
        Some("") => {
            let problem = "needs the path of a shared library, as in `lib:./mine.so`";
            return Err(error(Cause::Library(problem.to_owned()), Vec::new()));
        }
        Some(path) => {
            let library = LibraryController::load(path).map_err(|cause| error(cause, Vec::new()))?;
            Source::Library(Arc::new(library))
        }
        None => {
            let words = name.strip_prefix(EXEC).and_then(shlex::split).filter(|words| !words.is_empty());
            let Some(words) = words else {
                let problem = "needs a command, as in `exec:./mine` or `exec:python3 mine.py`; quotes must be closed";
                return Err(error(Cause::Library(problem.to_owned()), Vec::new()));
            };
            let program = Program::introduce::<Process>(words).map_err(|(cause, messages)| error(cause, messages))?;
            Source::Program(Arc::new(program))
        }
    };
    let (hello, declared) = source.declared();
    let (summary, document, declared) = (interned(&hello.summary), interned(&hello.source), declared.clone());
    Ok(Entry::new(static_name, summary, document, ExternalConfig { source, declared }))
}

/// What makes the decisions.
#[derive(Clone)]
enum Source {
    Program(Arc<Program>),
    Library(Arc<LibraryController>),
}

impl Source {
    fn declared(&self) -> (&Hello, &Declared) {
        match self {
            Self::Program(program) => (&program.hello, &program.declared),
            Self::Library(library) => (&library.hello, &library.declared),
        }
    }

    /// Returns a half with these values of the parameters.
    fn half(&self, setup: &Setup, parameters: &[FieldInfo]) -> Controller {
        match self {
            Self::Program(program) => {
                let values = named_values(parameters).into_iter().collect();
                let half = ProgramHalf::<Process>::new(Arc::clone(program), *setup, values);
                Controller::from_sender(ExternalHalf::new(Ok(half), setup))
            }
            Self::Library(library) => {
                let values: Vec<f64> = parameters.iter().map(|p| p.default).collect();
                let half = LibraryHalf::new(Arc::clone(library), *setup, &values);
                Controller::from_sender(ExternalHalf::new(half, setup).started())
            }
        }
    }
}

fn named_values(parameters: &[FieldInfo]) -> Vec<(String, f64)> {
    parameters.iter().map(|p| (p.name.to_owned(), p.default)).collect()
}

/// The configuration of an external controller.
#[derive(Clone)]
struct ExternalConfig {
    source: Source,
    /// With the values that are set.
    declared: Declared,
}

impl Parameters for ExternalConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        for p in self.declared.parameters.iter_mut().chain(&mut self.declared.receive_parameters) {
            fields.number(p.clone(), &mut p.default);
        }
    }
}

impl Config for ExternalConfig {
    fn signals(&self) -> SignalTables {
        (self.declared.send_signals, self.declared.receive_signals)
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let mut controller = self.source.half(setup, &self.declared.parameters);
        controller.feedback = self.declared.feedback;
        if let Some(name) = self.declared.receive_of
            && let Ok(other) = Registry::standard()
                .get(name)
                .expect("it was found")
                .build(setup, &named_values(&self.declared.receive_parameters))
        {
            (controller.receive, controller.feedback) = (other.receive, other.feedback);
        }
        controller
    }

    fn build(&self, setup: &Setup) -> Controller {
        let halves = self.halves(setup);
        if self.source.declared().0.guard { halves.guarded(setup.min) } else { halves }
    }
}
