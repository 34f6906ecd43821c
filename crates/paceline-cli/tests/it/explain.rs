// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline explain`: causes on stdout, broken inputs with their formats on stderr.

use super::{document, folder, paceline, rejects, stdout};
use serde_json::{Value, json};
use std::fs;

/// A muted camera: the sent rate falls at 20 s although the target allows more.
const MUTED: &[&str] = &["run", "real/muted", "--set", "duration=40s"];

#[test]
fn explains_a_run_and_its_capture_alike() {
    let folder = folder("explain_run", &[]);
    let made = [MUTED, &["--seed", "1", "--out", "results", "--pcap", "run.pcapng"]].concat();
    stdout(&paceline(&folder, &made), 0);
    let run = document(&paceline(&folder, &["explain", "results", "--json"]), 0);
    let findings = run["inputs"][0]["flows"][0]["findings"].as_array().unwrap();
    let muted = |finding: &Value| {
        let start = finding["start_s"].as_f64().unwrap();
        finding["cause"] == "application" && (28.0..33.0).contains(&start)
    };
    assert!(findings.iter().any(muted), "{findings:?}");
    let capture = document(&paceline(&folder, &["explain", "run.pcapng", "--json"]), 0);
    let findings = capture["inputs"][0]["flows"][0]["findings"].as_array().unwrap();
    assert!(findings.iter().any(muted), "{findings:?}");

    // Other controllers are offered where none was run.
    let offered = paceline(&folder, &["explain", "run.pcapng"]);
    let offered = stdout(&offered, 0);
    assert!(offered.contains("--what-if drc,googcc,scream-libwebrtc"), "{offered}");

    // One screen: no line is longer than 80 columns.
    let output = paceline(&folder, &["explain", "results", "--what-if", "googcc", "--page", "page.html"]);
    let text = stdout(&output, 0);
    let verdict = run["inputs"][0]["verdict"].as_str().unwrap();
    let begins = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(verdict.starts_with("Media of `") && begins.starts_with(verdict), "{verdict}: {text}");
    assert!(text.contains("application") && text.contains("To try:") && text.contains("closed loop"), "{text}");
    assert!(!text.contains("Other controllers"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains(&format!("<p class=\"verdict\">{}", verdict.split('`').next().unwrap())), "{verdict}");
    assert!(page.contains("application limit") && !page.contains("http-equiv=\"refresh\""));

    // A redacted capture has the same explanation, and none of the addresses.
    stdout(&paceline(&folder, &["explain", "run.pcapng", "--redact", "shared.pcapng"]), 0);
    let shared = document(&paceline(&folder, &["explain", "shared.pcapng", "--json"]), 0);
    assert_eq!(shared["inputs"][0]["flows"][0]["findings"], capture["inputs"][0]["flows"][0]["findings"]);
    // Source and destination of each tap are adjacent in the IPv4 header; four bytes alone also occur in sequence numbers.
    let addresses = |file: &str| {
        let bytes = fs::read(folder.join(file)).unwrap();
        let is_header = |w: &&[u8]| {
            (1..=8).any(|tap| **w == [10, tap, 0, 1, 10, tap, 0, 2] || **w == [10, tap, 0, 2, 10, tap, 0, 1])
        };
        bytes.windows(8).filter(is_header).count()
    };
    assert!(addresses("run.pcapng") > 1000);
    assert_eq!(addresses("shared.pcapng"), 0);
}

#[test]
fn rejects_unknown_and_broken_inputs() {
    let folder = folder("explain_broken", &[("text.txt", "hello"), ("cut.json", "{\"PeerConnections\": {\"a\"")]);
    let explain = |file| paceline(&folder, &["explain", file]);
    rejects(&explain("text.txt"), &["unknown format", "hello", "pcapng", "webrtc-internals", "event log"]);
    rejects(&explain("cut.json"), &["webrtc-internals: line 1, column"]);
    rejects(&explain("none.pcapng"), &["none.pcapng", "No such file"]);
    // A file that can be read is explained beside others.
    let report = |second: u32| {
        let at_ms = 1e12 + 1e3 * f64::from(second);
        serde_json::json!([{"id": "O", "type": "outbound-rtp", "timestamp": at_ms, "bytesSent": 100_000 * second}])
    };
    fs::write(folder.join("good.jsonl"), (0..20).map(|second| format!("{}\n", report(second))).collect::<String>())
        .unwrap();
    let some = paceline(&folder, &["explain", "text.txt", "good.jsonl", "none.pcapng"]);
    let (text, errors) = (stdout(&some, 2), String::from_utf8_lossy(&some.stderr));
    assert!(text.contains("good.jsonl") && !text.contains("text.txt"), "{text}");
    assert!(!text.contains("Other controllers"), "nothing was poor: {text}");
    assert!(errors.contains("text.txt: unknown format") && errors.contains("none.pcapng"), "{errors}");
    rejects(&paceline(&folder, &["explain", "text.txt", "--what-if", "gogcc"]), &["no controller `gogcc`", "googcc"]);
}

/// Returns where a document differs from a schema: members that it does not name, that are missing, or of another type. Of
/// alternatives, the one with the fewest differences counts.
fn misfits(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return misfits(root, &root["$defs"][name.rsplit('/').next().unwrap()], value, at);
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return any.iter().map(|schema| misfits(root, schema, value, at)).min_by_key(Vec::len).unwrap_or_default();
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let mut found = Vec::new();
    if !types.iter().any(|wanted| wanted == kind || (kind == "number" && wanted == "integer"))
        && schema.get("const") != Some(value)
    {
        found.push(format!("{at}: {kind}, not {types:?}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let items = if schema["items"].is_object() { &schema["items"] } else { &schema["prefixItems"][index] };
        found.extend(misfits(root, items, item, &format!("{at}[{index}]")));
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => found.extend(misfits(root, schema, member, &format!("{at}.{name}"))),
            None => found.push(format!("{at}.{name} is not in the schema")),
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(required.filter(|name| value.get(name).is_none()).map(|name| format!("{at}.{name} is missing")));
    found
}

#[test]
fn documents_fit_the_published_schema() {
    let folder = folder("explain_schema", &[]);
    stdout(&paceline(&folder, &[MUTED, &["--seed", "1", "--out", "results"]].concat()), 0);
    let schema = document(&paceline(&folder, &["schema", "explain"]), 0);
    let mut explained = document(&paceline(&folder, &["explain", "results", "--what-if", "googcc", "--json"]), 0);
    assert_eq!(misfits(&schema, &schema, &explained, ""), [""; 0]);
    assert_eq!(explained["version"], 1);
    explained["inputs"][0]["verdict"] = Value::Null;
    explained["inputs"][0]["extra"] = Value::Null;
    let found = misfits(&schema, &schema, &explained, "");
    assert!(found.len() == 2 && found.iter().all(|misfit| misfit.starts_with(".inputs[0].")), "{found:?}");
    explained.as_object_mut().unwrap().remove("version");
    assert_eq!(misfits(&schema, &schema, &explained, "").len(), 3);
}

#[test]
fn the_document_of_a_folder_fits_the_published_schema() {
    let folder = folder("explain_folder_schema", &[]);
    fs::create_dir_all(folder.join("dumps")).unwrap();
    fs::write(folder.join("dumps/text.txt"), "hello").unwrap();
    fs::write(folder.join("dumps/poor.jsonl"), samples(30)).unwrap();
    let schema: Value = serde_json::from_str(include_str!("explanation.schema.json")).unwrap();
    let mut calls = document(&paceline(&folder, &["explain", "dumps", "--json"]), 0);
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(2));
    assert_eq!(misfits(&schema, &schema, &calls, ""), [""; 0]);
    calls["calls"][0]["file"] = Value::Null;
    assert_eq!(misfits(&schema, &schema, &calls, "").len(), 1, "a name is text");
    calls["calls"][0]["file"] = "poor.jsonl".into();
    calls["calls"][1].as_object_mut().unwrap().remove("error");
    assert_eq!(misfits(&schema, &schema, &calls, ""), [".calls[1].error is missing"]);
}

/// A program that reads documents relies on their members.
#[test]
fn the_schema_of_this_version_is_the_published_one() {
    let folder = folder("explain_published_schema", &[]);
    let schema = document(&paceline(&folder, &["schema", "explain"]), 0);
    let published: Value = serde_json::from_str(include_str!("explanation.schema.json")).unwrap();
    let help = "`paceline schema explain > crates/paceline-cli/tests/it/explanation.schema.json` writes it; VERSION \
                rises if a member went away or has another meaning";
    assert!(schema == published, "{help}");
    assert!(!schema.to_string().contains("Self::"), "descriptions are for programs in any language");
    // What programs need, whatever else is in it.
    for member in ["verdict", "format", "notes", "flows"] {
        assert!(schema["$defs"]["Explained"]["properties"].get(member).is_some(), "{member}");
    }
}

/// Samples of getStats of 40 s. From the middle on, this share of the rate is left, and a queue stands around the middle.
fn samples(left: u64) -> String {
    let line = |second: u64| {
        let sent = 2500 * second.min(20) + 25 * left * second.saturating_sub(20);
        let (at, rtt) = (1_700_000_000_000 + 1000 * second, if second.abs_diff(20) <= 2 { 0.4 } else { 0.04 });
        let sent = json!({"id": "O", "type": "outbound-rtp", "kind": "video", "timestamp": at, "bytesSent": 100 * sent, "packetsSent": sent});
        let report =
            json!({"id": "R", "type": "remote-inbound-rtp", "timestamp": at, "packetsLost": 0, "roundTripTime": rtt});
        format!("[{sent},{report}]\n")
    };
    (0..40).map(line).collect()
}

#[test]
fn a_folder_of_dumps_has_a_row_for_each_the_worst_first() {
    let folder = folder("explain_folder", &[]);
    for name in ["dumps", "broken"] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("text.txt"), "hello").unwrap();
    }
    fs::write(folder.join("dumps/good.jsonl"), samples(100)).unwrap();
    fs::write(folder.join("dumps/poor.jsonl"), samples(30)).unwrap();
    let rows = document(&paceline(&folder, &["explain", "dumps", "--json"]), 0);
    let rows = rows["calls"].as_array().unwrap();
    let files: Vec<&str> = rows.iter().map(|row| row["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["poor.jsonl", "good.jsonl", "text.txt"]);
    let alone = document(&paceline(&folder, &["explain", "dumps/poor.jsonl", "--json"]), 0);
    assert_eq!(rows[0]["verdict"], alone["inputs"][0]["verdict"]);
    assert_eq!((&rows[0]["cause"], &rows[1]["poor_s"]), (&Value::from("own-queue"), &Value::from(0)));
    assert!(rows[0]["error"].is_null() && rows[2]["error"].as_str().unwrap().contains("unknown format"), "{rows:?}");
    let text = paceline(&folder, &["explain", "dumps"]);
    let text = stdout(&text, 0);
    assert!(text.starts_with("1 of 2 calls were poor at some time; cannot be read: 1."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let broken = paceline(&folder, &["explain", "broken"]);
    rejects(&broken, &["the folder has no results, and none of its 1 files can be read; text.txt: unknown format"]);
}

#[test]
fn a_folder_of_files_takes_no_options_of_one_call_and_no_other_arguments() {
    let folder = folder("explain_folder_alone", &[]);
    fs::create_dir_all(folder.join("dumps")).unwrap();
    fs::write(folder.join("dumps/poor.jsonl"), samples(30)).unwrap();
    let refused: [&[&str]; 5] = [
        &["dumps", "--page", "page.html"],
        &["dumps", "--what-if", "googcc"],
        &["dumps", "--run", "a"],
        &["dumps/poor.jsonl", "dumps"],
        &["dumps", "dumps"],
    ];
    for arguments in refused {
        let output = paceline(&folder, &[&["explain"], arguments].concat());
        let wanted = "dumps: a folder of files takes no --page, --what-if or --run, and no other arguments";
        rejects(&output, &[wanted, "for the folder alone"]);
    }
    assert!(!folder.join("page.html").exists());
    // Its files take them, and so does a folder of results.
    stdout(&paceline(&folder, &["explain", "dumps/poor.jsonl", "dumps/poor.jsonl", "--page", "page.html"]), 0);
    stdout(&paceline(&folder, &[MUTED, &["--seed", "1", "--out", "results"]].concat()), 0);
    stdout(&paceline(&folder, &["explain", "results", "dumps/poor.jsonl", "--page", "page.html"]), 0);
}
