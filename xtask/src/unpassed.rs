//! The tests of suites that no controller passes, with the derivation of each bound that the closest one misses.

use crate::steps::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use toml::Table;

/// The oracles, and what the names of faulty controllers begin with.
const ORACLES: [&str; 2] = ["ideal", "causal"];
const FAULTY: &str = "faulty-";

const HEAD: &str = "\n### Tests of SUITE that no controller passes\n\n\
    Passed by none: COUNT. The controller that misses the fewest bounds, and each of these with its measured value, the allowed values and their derivation.\n\n\
    | test | closest | missed | derivation |\n|---|---|---|---|\n";

/// Returns the section of a suite; empty if some controller passes each test.
///
/// # Errors
/// A scenario cannot be read, or has no such bound.
pub(crate) fn section(results: &Value) -> Result<String, String> {
    let lines = || results["results"].as_array().into_iter().flatten().filter(|line| is_controller(name(line)));
    let mut tests: Vec<&str> = lines().filter_map(|line| line["test"].as_str()).collect();
    tests.sort_unstable();
    tests.dedup();
    let (mut rows, mut unpassed) = (String::new(), 0);
    for test in &tests {
        let closest = lines().filter(|line| line["test"] == *test).min_by_key(|line| missed(line).count());
        let Some(closest) = closest.filter(|line| missed(line).count() > 0) else { continue };
        let asserts = asserts(test)?;
        let (mut values, mut whys): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
        // The bounds of a line are those of the case, in the order of the file.
        let asserts = asserts.iter().filter(|table| belongs(table, test));
        let (bounds, asserts): (Vec<&Value>, Vec<&Table>) = (bounds(closest).collect(), asserts.collect());
        if bounds.len() != asserts.len() {
            return Err(format!("{test}: {} bounds, and the scenario has {}", bounds.len(), asserts.len()));
        }
        for (bound, of) in bounds.into_iter().zip(asserts) {
            let id = bound[0].as_str().unwrap_or_default();
            if of.get("id").and_then(toml::Value::as_str) != Some(id) {
                return Err(format!("{test}: the bounds are not those of the scenario, at `{id}`"));
            }
            if bound[3] == "fail" {
                values.push(format!("`{id}` {}", value(bound, of)));
                whys.extend(of.get("why").and_then(toml::Value::as_str));
            }
        }
        let mut seen = BTreeSet::new();
        whys.retain(|why| seen.insert(*why));
        unpassed += 1;
        _ = writeln!(rows, "| `{test}` | `{}` | {} | {} |", name(closest), values.join("; "), whys.join(" "));
    }
    let id = results["id"].as_str().unwrap_or_default();
    let head = HEAD.replace("SUITE", id).replace("COUNT", &format!("{unpassed} of {} tests", tests.len()));
    Ok(if rows.is_empty() { rows } else { head + &rows })
}

fn name(line: &Value) -> &str {
    line["controller"].as_str().unwrap_or_default()
}

/// Whether it controls its rate and does not know the path.
fn is_controller(name: &str) -> bool {
    !name.starts_with(FAULTY) && !ORACLES.contains(&name)
}

fn bounds(line: &Value) -> impl Iterator<Item = &Value> {
    line["bounds"].as_array().into_iter().flatten()
}

fn missed(line: &Value) -> impl Iterator<Item = &Value> {
    bounds(line).filter(|bound| bound[3] == "fail")
}

/// Returns the bounds of the scenario of a test.
fn asserts(test: &str) -> Result<Vec<Table>, String> {
    let id = test.split(' ').next().unwrap_or_default();
    let path = root().join("scenarios").join(format!("{id}.toml"));
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file: Table = fs::read_to_string(&path).map_err(|e| failed(&e))?.parse().map_err(|e| failed(&e))?;
    let list = file.get("assert").and_then(toml::Value::as_array).into_iter().flatten();
    Ok(list.filter_map(|table| table.as_table().cloned()).collect())
}

/// Whether a bound belongs to the case of a test.
fn belongs(assert: &Table, test: &str) -> bool {
    let pairs = assert.get("case").and_then(toml::Value::as_table).into_iter().flatten();
    pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .all(|pair| test.split(' ').any(|p| p == pair))
}

/// Returns the measured and the allowed values of a bound, with units.
fn value(bound: &Value, assert: &Table) -> String {
    let metric = assert.get("metric").and_then(toml::Value::as_str).unwrap_or_default();
    let each = assert.contains_key("each");
    let (scale, unit) = match metric {
        _ if each => (1.0, " of the windows"),
        _ if assert.contains_key("relative_to") => (1.0, ""),
        metric if metric.ends_with("_bps") => (1e-6, " Mbit/s"),
        metric if metric.ends_with("_ms") => (1.0, " ms"),
        metric if metric.ends_with("_s") => (1.0, " s"),
        _ => (1.0, ""),
    };
    let number = |value: f64| {
        let value = value * scale;
        let digits = if value.abs() >= 100.0 { 0 } else { 3 };
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    let measured = match (bound[1].as_f64(), bound[2].as_f64()) {
        (Some(mean), Some(ci95)) => format!("{} ± {}{unit}", number(mean), number(ci95)),
        (Some(mean), None) => format!("{}{unit}", number(mean)),
        (None, _) => "no value in some run".to_owned(),
    };
    let ends = assert.get("bounds").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let end = |of: Option<&toml::Value>| of.and_then(|end| end.as_float().or_else(|| Some(end.as_integer()? as f64)));
    if each {
        return format!("{measured}, wanted {}", end(assert.get("share")).unwrap_or(1.0));
    }
    let allowed = match (end(ends.first()), end(ends.get(1))) {
        (Some(low), Some(high)) if high.is_infinite() => format!("at least {}{unit}", number(low)),
        (Some(0.0 | f64::NEG_INFINITY), Some(high)) => format!("at most {}{unit}", number(high)),
        (Some(low), Some(high)) => format!("{} to {}{unit}", number(low), number(high)),
        _ => String::new(),
    };
    format!("{measured}, allowed {allowed}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_tests_that_every_controller_fails_are_listed() {
        let line = |controller: &str, test: &str, verdict: &str| {
            json!({"controller": controller, "test": test, "bounds": [
                ["use", 0.9, 0.01, "pass"], ["delay", 250.0, 10.0, verdict], ["start", 5.0, 1.0, "pass"]]})
        };
        let results = json!({"id": "l4s", "results": [
            line("googcc", "l4s/alone", "fail"), line("nada", "l4s/alone", "fail"), line("ideal", "l4s/alone", "pass"),
            line("faulty-constant", "l4s/alone", "pass"),
            line("googcc", "l4s/beside-cubic", "pass"), line("nada", "l4s/beside-cubic", "fail")]});
        let text = section(&results).unwrap();
        assert!(
            text.contains("| `l4s/alone` | `googcc` | `delay` 250 ± 10 ms, allowed 12.5 to 38 ms | 12.5 ms of"),
            "{text}"
        );
        assert!(!text.contains("beside-cubic") && text.contains("### Tests of l4s"), "{text}");
    }

    #[test]
    fn a_bound_belongs_to_its_case() {
        let assert: Table = "case = { queue = \"pie\" }".parse().unwrap();
        assert!(belongs(&assert, "rfc8867/5.1 delay=50ms queue=pie") && !belongs(&assert, "rfc8867/5.1 queue=pie-2"));
        assert!(belongs(&Table::new(), "rfc8867/5.1"));
    }
}
