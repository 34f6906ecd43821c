// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tools: their arguments as types, from which the schemas follow, and the words of the command that each runs.

use rmcp::handler::server::common::{schema_for_input, schema_for_type};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// A call of a tool.
#[derive(Debug, Default, PartialEq)]
pub struct Call {
    /// The words of the command, without the name of the program.
    pub words: Vec<String>,
    /// The files that it names.
    pub files: Vec<PathBuf>,
}

/// A tool.
pub struct Entry {
    pub name: &'static str,
    /// Returns the call, or what is wrong with the arguments.
    pub call: fn(JsonObject) -> Result<Call, String>,
    describe: fn(&'static str) -> Tool,
}

/// The tools.
pub const TOOLS: &[Entry] = &[
    entry::<Explain>("explain"),
    entry::<WhatIf>("what_if"),
    entry::<Run>("run"),
    entry::<Compare>("compare"),
    entry::<List>("list"),
];

const fn entry<T: Command>(name: &'static str) -> Entry {
    let call = |arguments| {
        serde_json::from_value::<T>(serde_json::Value::Object(arguments)).map(T::call).map_err(|e| e.to_string())
    };
    Entry { name, call, describe: describe::<T> }
}

impl Entry {
    /// Returns what the server says of the tool.
    pub fn described(&self) -> Tool {
        (self.describe)(self.name)
    }
}

/// Describes a tool by the doc comments of its arguments.
fn describe<T: Command>(name: &'static str) -> Tool {
    let about = schema_for_type::<T>().get("description").and_then(serde_json::Value::as_str).map(str::to_owned);
    let schema = schema_for_input::<T>().expect("the arguments are an object");
    let annotations = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about.unwrap_or_default(), schema).with_annotations(annotations)
}

/// The arguments of a tool.
trait Command: DeserializeOwned + JsonSchema + 'static {
    fn call(self) -> Call;
}

/// Explains why calls were bad. Reads dumps of webrtc-internals, rtcstats dumps, getStats samples, captures (pcap, pcapng), RTC event logs,
/// folders of results, or a folder of many such files. `verdict` is the answer in one sentence; `causes` are ordered by what they cost.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Explain {
    /// Paths of files or folders on the machine of the server.
    files: Vec<PathBuf>,
    /// The run of a folder of results that has several.
    run: Option<String>,
}

impl Command for Explain {
    fn call(self) -> Call {
        WhatIf { files: self.files, controllers: Vec::new(), run: self.run }.call()
    }
}

/// Explains calls, and runs other controllers in the simulator on the path of each call, as far as the input shows the path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhatIf {
    /// Paths of files on the machine of the server.
    files: Vec<PathBuf>,
    /// Names of controllers, such as `googcc`; `list` with the kind `controllers` has them.
    controllers: Vec<String>,
    /// The run of a folder of results that has several.
    run: Option<String>,
}

impl Command for WhatIf {
    fn call(self) -> Call {
        let mut words = vec!["explain".to_owned(), "--json".to_owned()];
        option(&mut words, "what-if", (!self.controllers.is_empty()).then(|| self.controllers.join(",")));
        option(&mut words, "run", self.run);
        words.push("--".to_owned());
        words.extend(self.files.iter().map(|file| file.display().to_string()));
        Call { words, files: self.files }
    }
}

/// Runs a scenario in the simulator: rates, delays, losses, freezes and score of each flow.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Run {
    /// Id of a scenario, as `list` with the kind `scenarios` prints it, or path of a TOML file.
    scenario: String,
    /// Controllers for the media flows, one after the other. If absent: those of the scenario.
    controllers: Option<Vec<String>>,
    #[serde(flatten)]
    variation: Variation,
}

/// Runs a scenario under several controllers on the same seeds, ranks them, and judges the differences to the first one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Compare {
    /// Id of a scenario, as `list` with the kind `scenarios` prints it, or path of a TOML file.
    scenario: String,
    /// Controllers for the media flows; the first is the baseline.
    controllers: Vec<String>,
    #[serde(flatten)]
    variation: Variation,
}

/// How a scenario is run.
#[derive(Deserialize, JsonSchema)]
struct Variation {
    /// The seed of the run, or of the first one.
    seed: Option<u64>,
    /// The number of runs.
    repeats: Option<u32>,
    /// Changes of the scenario, such as `path.rtt=80ms`: dotted key and value.
    #[serde(default)]
    set: Vec<String>,
    /// The case of the scenario, as `NAME=VALUE`.
    case: Option<String>,
}

impl Variation {
    fn call(self, command: &str, scenario: String, controllers: Option<Vec<String>>) -> Call {
        let mut words = vec![command.to_owned(), "--json".to_owned()];
        option(&mut words, "controllers", controllers.map(|names| names.join(",")));
        option(&mut words, "seed", self.seed.map(|seed| seed.to_string()));
        option(&mut words, "repeats", self.repeats.map(|repeats| repeats.to_string()));
        self.set.into_iter().for_each(|change| option(&mut words, "set", Some(change)));
        option(&mut words, "case", self.case);
        words.extend(["--".to_owned(), scenario.clone()]);
        Call { words, files: vec![scenario.into()] }
    }
}

impl Command for Run {
    fn call(self) -> Call {
        self.variation.call("run", self.scenario, self.controllers)
    }
}

impl Command for Compare {
    fn call(self) -> Call {
        self.variation.call("compare", self.scenario, Some(self.controllers))
    }
}

/// Lists what can be run: controllers, scenarios, metrics, queues, sources, paths and more. Without arguments: every kind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// What to list, such as `controllers`, `scenarios` or `metrics`.
    kind: Option<String>,
    /// Name of one of them, which returns its details; or the group of several, such as `mmsys16` of the scenarios.
    name: Option<String>,
}

impl Command for List {
    fn call(self) -> Call {
        let words = ["list", "--json", "--"].map(str::to_owned).into_iter();
        Call { words: words.chain(self.kind).chain(self.name).collect(), files: Vec::new() }
    }
}

/// Adds an option in one word, so that no value is an option itself.
fn option(words: &mut Vec<String>, name: &str, value: Option<String>) {
    words.extend(value.map(|value| format!("--{name}={value}")));
}
