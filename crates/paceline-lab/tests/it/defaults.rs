// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defaults: writing the default that the schema describes changes nothing.

use crate::fixtures::registry;
use paceline_scenario::{Catalogue, Changes, load, schema};

/// A scenario with required keys only.
const BARE: &str = r#"id = "test/bare"
title = "What is left out has a default"
duration = "60 s"
[path]
[[flow]]
id = "video"
controller = "gcc-2016"
[[flow]]
id = "tcp"
kind = "tcp"
access_delay = "1 ms"
"#;

/// Each table of the schema, the key that leads to it, and the overrides with which its keys make sense.
const PLACES: &[(&str, &str, &[&str])] = &[
    ("", "", &[]),
    ("Path", "path", &[]),
    ("Way", "path.forward", &["path.forward.capacity=1Mbps"]),
    ("Hop", "path.forward.hops.0", &["path.forward={ hops = [{ id = \"first\" }, { delay = \"1 ms\" }] }"]),
    ("Queue", "path.forward.queue", &["path.forward={ capacity = \"1Mbps\", queue = { limit = \"300 ms\" } }"]),
    (
        "Queue",
        "path.forward.queue",
        &["path.forward={ capacity = \"1Mbps\", queue = { discipline = \"codel\", limit = \"300 ms\" } }"],
    ),
    ("JitterTable", "path.forward.jitter", &["path.forward={ jitter = { std = \"1 ms\" } }"]),
    (
        "LossTable",
        "path.forward.loss",
        &["path.forward={ loss = { model = \"gilbert-elliott\", to_bad = \"1 %\", to_good = \"10 %\" } }"],
    ),
    (
        "TraceTable",
        "path.forward.capacity",
        &["path.forward={ capacity = { trace = \"../../scenarios/real/traces/alphartc.json\" } }"],
    ),
    ("Flow", "flow.video", &[]),
    ("Flow", "flow.tcp", &[]),
    ("HostTable", "flow.video.host", &["flow.video.host={}"]),
    ("SourceTable", "flow.video.encoder", &["flow.video.encoder={ max = \"2 Mbps\" }"]),
    ("SourceTable", "flow.video.audio", &["flow.video.audio={ source = \"audio\" }"]),
    ("Stream", "flow.video.stream.0", &["flow.video.stream=[{ id = \"s\", encoder = {} }]"]),
    ("ClockTable", "flow.video.clock", &["flow.video.clock={}"]),
    ("MeasureTable", "measure", &["measure={}"]),
    (
        "IncludeIfTable",
        "measure.include_if",
        &["measure={ include_if = { metric = \"overuse_count\", at_least = 1 } }"],
    ),
];

/// Returns the scenario as text, or the error.
fn plan(settings: &[&str]) -> Result<String, String> {
    let file = format!("{}/bare.toml", env!("CARGO_TARGET_TMPDIR"));
    let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
    let changes = Changes { settings, ..Changes::default() };
    let mut plan = load(&Catalogue.find(&file).unwrap(), &changes, paceline_lab::registries(registry()))
        .map_err(|p| p.to_string())?;
    plan.notes.clear();
    // A flow with `count = 1` has a number in its id.
    Ok(format!("{plan:?}")
        .replace("-1\", group: Some(\"video\")", "\", group: None")
        .replace("-1\", group: Some(\"tcp\")", "\", group: None"))
}

/// Returns the default in the description of a key, if it can be written as a value.
fn literal(text: &str) -> Option<String> {
    let before = text.split_once(" if absent")?.0.replace('\n', " ");
    let value = before.rsplit_once("; ").map_or(&*before, |(_, value)| value).to_owned();
    let quoted = value.strip_prefix('`').and_then(|v| v.strip_suffix('`')).filter(|v| !v.contains('`'));
    let digits = value.starts_with(|c: char| c.is_ascii_digit());
    quoted.map(str::to_owned).or((digits || value == "true" || value == "false").then_some(value))
}

#[test]
fn described_defaults_are_the_defaults() {
    std::fs::write(format!("{}/bare.toml", env!("CARGO_TARGET_TMPDIR")), BARE).unwrap();
    let schema = schema();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (table, place, needed) in PLACES {
        let table = if table.is_empty() { &schema } else { &schema["$defs"][table] };
        let without = plan(needed).unwrap_or_else(|error| panic!("{place}: {error}"));
        for (key, value) in table["properties"].as_object().unwrap() {
            if key == "discipline" && needed.iter().any(|setting| setting.contains("discipline = ")) {
                continue; // the place needs another one than the default
            }
            let Some(literal) = literal(value["description"].as_str().unwrap_or_default()) else { continue };
            let setting = format!("{place}.{key}={literal}").trim_start_matches('.').to_owned();
            match plan(&[*needed, &[setting.as_str()]].concat()) {
                Ok(with) if with == without => tried += 1,
                Ok(_) => wrong.push(setting),
                // The key belongs to another kind of flow, source or loss.
                Err(error)
                    if ["has no `", "does not read", "needs a `controller`"].iter().any(|e| error.contains(e)) => {}
                Err(error) => wrong.push(format!("{setting}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tried > 35, "{tried}");
    // An override changes the text.
    assert_ne!(plan(&["flow.video.start_rate=301 kbps"]), plan(&[]));
}
