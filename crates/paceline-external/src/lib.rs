//! Controllers outside the program: `exec:COMMAND` is a process that speaks JSON lines ([`protocol`]).
//!
//! [`entry`] makes a registry entry of such a name. A half cannot return an error, so a program that fails stores the failure,
//! and the [`World`] around a backend ends the run with it.
//!
//! A program is started once to read its hello, and once for each flow of each run. Equal answers give equal trace hashes:
//! the lines contain simulated time alone, and how long an answer takes changes nothing.

#![cfg(unix)]

mod declared;
mod exec;
mod failure;
mod process;
pub mod protocol;
mod world;

pub use failure::Cause;
pub use process::end_all;
pub use world::World;

use declared::{Declared, Parameter, interned};
use exec::{ExecSendHalf, Program};
use paceline::{Config, Controller, Entry, FieldVisitor, Registry, Setup, SignalTables};
use std::sync::Arc;

/// The beginning of the name of a program.
pub const EXEC: &str = "exec:";

/// Returns whether this is the name of an external controller.
pub fn is_external(name: &str) -> bool {
    name.starts_with(EXEC)
}

/// An external controller that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the controller `{name}` {cause}{}", indented(messages))]
pub struct ExternalError {
    /// The name.
    pub name: String,
    /// What went wrong.
    pub cause: Cause,
    /// The last lines on its standard error.
    pub messages: Vec<String>,
}

/// Returns the messages of a program below an error.
fn indented(messages: &[String]) -> String {
    let lines: String = messages.iter().map(|line| format!("\n  | {line}")).collect();
    if lines.is_empty() { lines } else { format!("\nits last lines on stderr:{lines}") }
}

/// Starts the program of an external controller, reads its hello, and returns its registry entry.
///
/// # Errors
/// The name is not valid, or the program does not start or does not introduce itself.
pub fn entry(name: &str) -> Result<Entry, ExternalError> {
    let error = |cause: Cause, messages| ExternalError { name: name.to_owned(), cause, messages };
    let words = name.strip_prefix(EXEC).and_then(shlex::split).filter(|words| !words.is_empty());
    let Some(words) = words else {
        let problem = "needs a command, as in `exec:./mine` or `exec:python3 mine.py`; quotes must be closed";
        return Err(error(Cause::Library(problem.to_owned()), Vec::new()));
    };
    let static_name = interned(name);
    let program = Program::introduce(static_name, words).map_err(|(cause, messages)| error(cause, messages))?;
    let (summary, source) = (interned(&program.hello.summary), interned(&program.hello.source));
    Ok(Entry::new(
        static_name,
        summary,
        source,
        ExecConfig { declared: program.declared.clone(), program: Arc::new(program) },
    ))
}

/// The configuration of a program.
#[derive(Clone)]
struct ExecConfig {
    program: Arc<Program>,
    /// With the values that are set.
    declared: Declared,
}

impl Config for ExecConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        for p in self.declared.parameters.iter_mut().chain(&mut self.declared.receive_parameters) {
            fields.number(p.name, p.unit, p.range, &mut p.value).describe(p.description);
        }
    }

    fn signals(&self) -> SignalTables {
        (self.declared.send_signals, self.declared.receive_signals)
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let values = |list: &[Parameter]| list.iter().map(|p| (p.name.to_owned(), p.value)).collect::<Vec<_>>();
        let parameters = values(&self.declared.parameters).into_iter().collect();
        let mut controller = Controller::from_sender(ExecSendHalf::new(Arc::clone(&self.program), *setup, parameters));
        controller.feedback = self.declared.feedback;
        if let Some(name) = self.declared.receive_of
            && let Ok(other) = Registry::standard()
                .get(name)
                .expect("it was found")
                .build(setup, &values(&self.declared.receive_parameters))
        {
            (controller.receive, controller.feedback) = (other.receive, other.feedback);
        }
        controller
    }

    fn build(&self, setup: &Setup) -> Controller {
        let halves = self.halves(setup);
        if self.program.hello.guard { halves.guarded(setup.min) } else { halves }
    }
}
