// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failure of a controller outside the program.

use paceline::Failure;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Cause {
    /// The program did not start.
    #[error("did not start: `{program}`: {error}")]
    Start {
        program: String,
        /// The error of the system.
        error: String,
    },
    /// There was no line in time.
    #[error(
        "gave no answer within {seconds} s: one line is due after each line; `answer_timeout_ms` in the hello sets the limit"
    )]
    NoAnswer {
        /// The limit.
        seconds: f64,
    },
    /// The program did not read its input in time.
    #[error("read none of its input for {seconds} s, and its pipe is full")]
    NotReading {
        /// The limit.
        seconds: f64,
    },
    /// The program wrote something before its next input.
    #[error("wrote more than one line in answer to a line: print nothing else to the standard output")]
    Unasked,
    /// The program closed its output or ended.
    #[error("{}", match status {
        Some(status) => format!("ended ({status}) before the end of its input"),
        None => "closed its standard output".to_owned(),
    })]
    Exited {
        /// Its exit status, if it ended.
        status: Option<String>,
    },
    /// A line is too long.
    #[error("wrote a line of more than {limit} bytes")]
    LongLine { limit: usize },
    /// A line or a value is invalid.
    #[error("answered invalid data: {problem}")]
    Invalid {
        /// What is wrong, with the line.
        problem: String,
    },
    /// A name or a shared library is not that of a controller.
    #[error("{0}")]
    Library(String),
    /// A function of a shared library returned an error or wrote invalid data.
    #[error("failed: {0}")]
    Function(String),
}

/// The last lines of a program on its standard error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("its last lines on stderr:{}", .0.iter().map(|line| format!("\n  | {line}")).collect::<String>())]
pub struct LastLines(pub Vec<String>);

/// Returns the failure of a half for this cause, with the last lines of its program as its source.
pub fn failure(cause: &Cause, messages: Vec<String>) -> Failure {
    let failure = Failure::new(cause.to_string());
    if messages.is_empty() { failure } else { failure.with_source(LastLines(messages)) }
}
