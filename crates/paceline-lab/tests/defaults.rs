//! What the schema says of an absent key is what an absent key does: writing that value changes nothing.

use paceline::Registry;
use paceline_lab::scenario::{Catalogue, Changes, load, schema};

/// A scenario that says as little as it can.
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
"#;

/// Where the keys of each table of the schema stand, and what has to be written for them to make sense.
const PLACES: &[(&str, &str, &[&str])] = &[
    ("", "", &[]),
    ("Path", "path", &[]),
    ("Way", "path.forward", &["path.forward.capacity=1Mbps"]),
    ("Hop", "path.forward.hops.0", &["path.forward={ hops = [{ id = \"first\" }, { delay = \"1 ms\" }] }"]),
    ("Queue", "path.forward.queue", &["path.forward={ capacity = \"1Mbps\", queue = { limit = \"300 ms\" } }"]),
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
    ("SourceTable", "flow.video.encoder", &["flow.video.encoder={ max = \"2 Mbps\" }"]),
    ("SourceTable", "flow.video.audio", &["flow.video.audio={ source = \"audio\" }"]),
    ("Stream", "flow.video.stream.0", &["flow.video.stream=[{ id = \"s\", encoder = {} }]"]),
    ("ClockTable", "flow.video.clock", &["flow.video.clock={}"]),
    ("MeasureTable", "measure", &["measure={}"]),
    ("KeepTable", "measure.keep", &["measure={ keep = { metric = \"overuses\", at_least = 1 } }"]),
];

/// The plan as text, or the complaint.
fn plan(settings: &[&str]) -> Result<String, String> {
    let file = format!("{}/bare.toml", env!("CARGO_TARGET_TMPDIR"));
    let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
    let changes = Changes { settings, ..Changes::default() };
    let mut plan = load(&Catalogue.find(&file).unwrap(), &changes, &Registry::standard()).map_err(|p| p.to_string())?;
    plan.notes.clear();
    // Of flows that a `count` makes, the only one is named with its number.
    Ok(format!("{plan:?}")
        .replace("-1\", group: Some(\"video\")", "\", group: None")
        .replace("-1\", group: Some(\"tcp\")", "\", group: None"))
}

/// A key's value where it is absent, if its text gives one that can be written.
fn literal(text: &str) -> Option<String> {
    let before = text.split_once(" if absent")?.0.replace('\n', " ");
    let value = before.rsplit_once("; ").map_or(&*before, |(_, value)| value).to_owned();
    let quoted = value.strip_prefix('`').and_then(|v| v.strip_suffix('`')).filter(|v| !v.contains('`'));
    let digits = value.starts_with(|c: char| c.is_ascii_digit());
    quoted.map(str::to_owned).or((digits || value == "true" || value == "false").then_some(value))
}

#[test]
fn defaults_are_as_the_schema_says() {
    std::fs::write(format!("{}/bare.toml", env!("CARGO_TARGET_TMPDIR")), BARE).unwrap();
    let schema = schema();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (table, place, needed) in PLACES {
        let table = if table.is_empty() { &schema } else { &schema["$defs"][table] };
        let without = plan(needed).unwrap_or_else(|problem| panic!("{place}: {problem}"));
        for (key, value) in table["properties"].as_object().unwrap() {
            let Some(literal) = literal(value["description"].as_str().unwrap_or_default()) else { continue };
            let setting = format!("{place}.{key}={literal}").trim_start_matches('.').to_owned();
            match plan(&[*needed, &[setting.as_str()]].concat()) {
                Ok(with) if with == without => tried += 1,
                Ok(_) => wrong.push(setting),
                // What belongs to another kind of flow, source or loss.
                Err(problem)
                    if ["has no `", "does not read", "needs a `controller`"].iter().any(|p| problem.contains(p)) => {}
                Err(problem) => wrong.push(format!("{setting}: {problem}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tried > 35, "{tried}");
    // A plan shows what was set.
    assert_ne!(plan(&["flow.video.start_rate=301 kbps"]), plan(&[]));
}
