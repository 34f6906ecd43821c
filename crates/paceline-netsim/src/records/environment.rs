// SPDX-License-Identifier: MIT OR Apache-2.0
//! What results were made with and on. Nothing in it changes what a simulation computes.

use serde::{Deserialize, Serialize};

/// The program, the machine and the operating system of results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Paceline.
    pub version: String,
    /// Commit of its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Model and number of processors, such as `AMD EPYC 7B13, 2 processors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Operating system with its kernel and architecture, such as `linux 6.12.1, x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

/// Another program that took part in a run, such as a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Name and version, as the program tells them.
    pub version: String,
    /// Command line. `{folder}` stands for a folder that lasts as long as the run.
    pub command: Vec<String>,
}
