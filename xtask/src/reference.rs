// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference pages of the book, written from the output of the program.
//!
//! ```text
//! paceline list --json ─┬─▶ controllers, metrics, scenarios, registries
//! paceline schema ──────┴─▶ scenario-keys          paceline … --help ─▶ commands
//! ```

mod keys;
mod markdown;

use crate::steps::{Problem, command, output, program, run, target};
use markdown::{Table, linked, plain};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Builds the command as it is built for the tests.
pub fn paceline() -> Result<PathBuf, Problem> {
    run(command("cargo build --quiet --profile test --package paceline-cli --features testbed,mcp"))?;
    Ok(target().join("debug/paceline"))
}

/// Returns every page: its file name and its text.
pub fn pages(paceline: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let stdout = |arguments: &str| output(program(paceline, arguments)).map(|(text, _)| text);
    let json = |arguments: &str| -> Result<Value, String> {
        serde_json::from_str(&stdout(arguments)?).map_err(|error| format!("`paceline {arguments}`: {error}"))
    };
    let mut list = json("list --json")?;
    // A build with the world `browser` also lists the controllers of that browser.
    if let Some(all) = list["controllers"].as_array_mut() {
        all.retain(|entry| !plain(&entry["summary"]).contains("[only in --world"));
    }
    Ok(vec![
        ("commands.md", commands(&stdout)?),
        ("controllers.md", controllers(&list)),
        ("metrics.md", metrics(&list)),
        ("scenarios.md", scenarios(&list)),
        ("registries.md", registries(&list)),
        ("scenario-keys.md", keys::page(&json("schema")?)?),
    ])
}

fn commands(stdout: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let all = stdout("--help")?;
    let names = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split_once(' ')).map(|(name, _)| name);
    // The continuation of a description is indented further.
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    let mut text = format!("# Commands\n\n```text\n{}\n```\n", all.trim_end());
    for name in names {
        let help = stdout(&format!("{name} --help"))?;
        text += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    Ok(text)
}

fn controllers(list: &Value) -> String {
    let mut text = "# Controllers\n\nA scenario names one by `controller`, and changes its parameters in `config`; on the command \
         line it is `--controller NAME` and `--set flow.ID.config.PARAMETER=VALUE`.\n".to_owned();
    let overview = |kind: &str| {
        let mut table = Table::new(&["controller", "what it is", "source"]);
        for entry in entries(list, kind) {
            table.row(&[linked(plain(&entry["name"])), plain(&entry["summary"]), plain(&entry["source"])]);
        }
        table
    };
    text += &format!("\n{}", overview("controllers"));
    text += &format!(
        "\n## Faulty controllers\n\nEach of these has exactly one fault. They test suites and are no controllers to choose from: \
         [yardsticks](../explanation/yardsticks.md).\n\n{}",
        overview("yardsticks")
    );
    for entry in entries(list, "controllers").iter().chain(entries(list, "yardsticks")) {
        text += &format!("\n## {}\n\n{}.\n", plain(&entry["name"]), plain(&entry["summary"]));
        let mut parameters = Table::new(&["parameter", "default", "range", "what it is, and source"]);
        for p in entries(entry, "parameters") {
            let default = format!("{} {}", number(&p["default"]), plain(&p["unit"]));
            let range = format!("{} to {}", number(&p["range"][0]), number(&p["range"][1]));
            let name = format!("`{}`", plain(&p["name"]));
            parameters.row(&[name, default.trim_end().to_owned(), range, plain(&p["source"])]);
        }
        if !parameters.is_empty() {
            text += &format!("\n{parameters}");
        }
        let mut signals = Table::new(&["signal", "half", "unit or states"]);
        for half in ["send", "receive"] {
            for s in entries(&entry["signals"], half) {
                let states = s["states"].as_array().map(|names| names.iter().map(plain).collect::<Vec<_>>().join(", "));
                signals.row(&[
                    format!("`{}`", plain(&s["name"])),
                    half.to_owned(),
                    states.unwrap_or(plain(&s["unit"])),
                ]);
            }
        }
        if !signals.is_empty() {
            text += &format!("\n{signals}");
        }
    }
    text
}

fn metrics(list: &Value) -> String {
    let mut table = Table::new(&["metric", "what it is", "kind", "unit", "tolerance"]);
    for m in entries(list, "metrics") {
        let (name, kind) = (format!("`{}`", plain(&m["name"])), plain(&m["kind"]));
        let (what, unit) = bracketed(&plain(&m["summary"]));
        table.row(&[name, what, kind, unit, tolerance(m)]);
    }
    format!(
        "# Metrics\n\nHow each is taken: [metrics](../explanation/metrics.md). The tolerance is how far a measured value may lie from \
         a published one; of a part of that one and a fixed amount, the larger. A ratio of two values has that of a share.\n\n{table}"
    )
}

fn tolerance(metric: &Value) -> String {
    let tolerance = &metric["tolerance"];
    let (part, least) = (&tolerance["part"], &tolerance["least"]);
    let unit = plain(&metric["unit"]);
    let part = part.as_f64().filter(|x| *x > 0.0).map(|x| format!("{:.0} %", x * 100.0));
    let least = least.as_f64().filter(|x| *x > 0.0).map(|x| format!("{x} {unit}").trim_end().to_owned());
    let usual = [part, least].into_iter().flatten().collect::<Vec<_>>().join(" or ");
    match (tolerance["least_part"].as_f64(), tolerance["floor"].as_f64()) {
        (Some(part), Some(floor)) => {
            format!("{usual}; of small values {:.0} %, at least {floor} {unit}", part * 100.0).trim_end().to_owned()
        }
        _ => usual,
    }
}

fn scenarios(list: &Value) -> String {
    let mut table = Table::new(&["scenario", "what it is", "flows", "time", "source"]);
    for s in entries(list, "scenarios") {
        let name = format!("`{}`", plain(&s["name"]));
        let time = format!("{} s", number(&s["duration_s"]));
        let case = |label: &Value| {
            let pairs = label.as_object().into_iter().flatten();
            pairs.map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(" ")
        };
        let cases: Vec<String> = s["cases"].as_array().into_iter().flatten().map(case).collect();
        let cases = if cases.is_empty() { String::new() } else { format!(" [{}]", cases.join(", ")) };
        table.row(&[name, plain(&s["summary"]) + &cases, number(&s["flows"]), time, plain(&s["source"])]);
    }
    let mut sweeps = Table::new(&["sweep", "what it is", "source"]);
    for s in entries(list, "sweeps") {
        sweeps.row(&[format!("`{}`", plain(&s["name"])), plain(&s["summary"]), plain(&s["source"])]);
    }
    let mut tables = Table::new(&["table", "what it is", "source"]);
    for t in entries(list, "tables") {
        tables.row(&[format!("`{}`", plain(&t["name"])), plain(&t["summary"]), plain(&t["source"])]);
    }
    format!(
        "# Scenarios\n\nWhat `paceline run`, `compare` and `reproduce` take by name; the files lie under `scenarios/`. In \
         brackets: the cases of an experiment, for `--case`.\n\n{table}\n## Sweeps\n\n{sweeps}\n## Tables that a \
         formula gives\n\n`paceline reproduce` takes these, too; nothing is run.\n\n{tables}"
    )
}

/// Returns the page of every registry without a page of its own.
fn registries(list: &Value) -> String {
    const ELSEWHERE: [&str; 6] = ["controllers", "metrics", "scenarios", "sweeps", "tables", "yardsticks"];
    let mut text = "# Queues, losses, sources, TCP, traces\n\nThe names that scenarios take for these.\n".to_owned();
    let kinds = list.as_object().into_iter().flatten().map(|(kind, _)| kind.as_str());
    for kind in kinds.filter(|kind| !ELSEWHERE.contains(kind)) {
        let mut table = Table::new(&["name", "what it is", "written"]);
        for entry in entries(list, kind) {
            let (what, how) = bracketed(&plain(&entry["summary"]));
            let how = if how.is_empty() { how } else { format!("`{how}`") };
            table.row(&[format!("`{}`", plain(&entry["name"])), what, how]);
        }
        text += &format!("\n## {kind}\n\n{table}");
    }
    text
}

/// Splits a summary and the brackets at its end: a unit or a syntax.
fn bracketed(summary: &str) -> (String, String) {
    let parts = summary.strip_suffix(']').and_then(|s| s.rsplit_once(" ["));
    let (what, bracket) = parts.unwrap_or((summary, ""));
    (what.to_owned(), bracket.to_owned())
}

fn entries<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

/// Returns a number as text. JSON has no infinity and uses null.
fn number(value: &Value) -> String {
    match value {
        Value::Null => "∞".to_owned(),
        value => value.to_string().trim_end_matches(".0").to_owned(),
    }
}
