// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask promises`: sentences with words such as `never` and `every`, and the tests that hold them.
//!
//! `docs/promises.toml` has a table for each page: a fragment of the sentence, how many tries its tests make in a usual run, and the tests
//! as `FILE::NAME`. The list `no_promise` has the fragments of instructions and definitions.

use super::pages::files;
use crate::steps::{Problem, no_arguments, root};
use std::fs;
use std::ops::Range;
use std::path::Path;
use toml::{Table, Value};

const REGISTRY: &str = "docs/promises.toml";
const PAGES: [&str; 3] = ["README.md", "docs/index.md", "docs/security.md"];
const FOLDERS: [&str; 2] = ["docs/how-to", "docs/tutorials"];
const WORDS: [&str; 6] = ["all", "always", "every", "everything", "never", "nothing"];

/// Checks the promises and prints them with the tries and the tests.
pub fn promises(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    let errors = find_errors()?;
    if !errors.is_empty() {
        return Err(Problem::Failed(errors.join("\n")));
    }
    println!("| page | promise | tries | tests |\n|---|---|---|---|");
    for (page, entries) in registry()? {
        for (fragment, tries, tests) in promises_of(&entries) {
            println!("| {page} | {} | {tries} | {} |", fragment.replace('|', "\\|"), tests.join(", "));
        }
    }
    Ok(())
}

/// Returns all errors of the registry, and the sentences that it lacks.
pub fn find_errors() -> Result<Vec<String>, String> {
    let (registry, empty) = (registry()?, Value::Table(Table::new()));
    let mut pages: Vec<String> = PAGES.map(str::to_owned).into();
    for folder in FOLDERS {
        let found = files(&root().join(folder), "md", false)?;
        pages.extend(found.iter().map(|path| path.strip_prefix(root()).unwrap_or(path).display().to_string()));
    }
    let unknown = registry.keys().filter(|page| !pages.contains(page));
    let mut errors: Vec<_> = unknown.map(|page| format!("{REGISTRY}: no page `{page}` is checked")).collect();
    for page in &pages {
        let entries = registry.get(page).unwrap_or(&empty);
        errors.extend(errors_of(page, &read(page)?, entries));
        for (fragment, tries, tests) in promises_of(entries) {
            let missing = tests.iter().filter(|test| !exists(test)).map(|test| format!("no test `{test}`"));
            let none = [("tries", tries.is_empty()), ("tests", tests.is_empty())];
            let none = none.iter().filter(|(_, is_empty)| *is_empty).map(|(key, _)| format!("`{key}` is missing"));
            errors.extend(none.chain(missing).map(|why| format!("{REGISTRY}: {page}: `{fragment}`: {why}")));
        }
    }
    Ok(errors)
}

fn registry() -> Result<Table, String> {
    read(REGISTRY)?.parse().map_err(|error| format!("{REGISTRY}: {error}"))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the fragments of a page that are promises, with how many tries their tests make, and the tests.
fn promises_of(entries: &Value) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
    let entries = entries.as_table().into_iter().flatten().filter(|(fragment, _)| *fragment != "no_promise");
    entries.map(|(fragment, entry)| {
        let tries = entry.get("tries").and_then(Value::as_str).unwrap_or_default();
        (fragment.as_str(), tries, entry.get("tests").map(strings).unwrap_or_default())
    })
}

/// Returns the fragments that are not on the page once, and the words outside of fragments.
fn errors_of(page: &str, markdown: &str, entries: &Value) -> Vec<String> {
    let (text, lines) = prose(markdown);
    let (mut errors, mut known): (_, Vec<Range<usize>>) = (Vec::new(), Vec::new());
    let others = entries.get("no_promise").map(strings).unwrap_or_default();
    for fragment in promises_of(entries).map(|(fragment, ..)| fragment).chain(others) {
        known.extend(text.match_indices(fragment).map(|(at, _)| at..at + fragment.len()));
        let count = text.matches(fragment).count();
        if count != 1 {
            errors.push(format!("{REGISTRY}: {page} has `{fragment}` {count} times instead of once"));
        }
    }
    let plain = without_code(&text).to_ascii_lowercase();
    for (word, (at, _)) in WORDS.iter().flat_map(|word| plain.match_indices(word).map(move |found| (word, found))) {
        let end = at + word.len();
        let within = plain[..at].ends_with(char::is_alphanumeric) || plain[end..].starts_with(char::is_alphanumeric);
        if !within && !known.iter().any(|range| range.contains(&at)) {
            let line = lines.iter().rfind(|(start, _)| *start <= at).map_or(0, |(_, line)| *line);
            let before = text[..at].char_indices().nth_back(40).map_or(0, |(from, _)| from);
            let after = text[end..].char_indices().nth(40).map_or(text.len(), |(to, _)| end + to);
            errors.push(format!("{page}:{line}: `{word}` needs a test in {REGISTRY}: … {} …", &text[before..after]));
        }
    }
    errors
}

/// Returns the text outside of fenced blocks with single spaces, and where each line starts in it.
fn prose(markdown: &str) -> (String, Vec<(usize, usize)>) {
    let (mut text, mut lines, mut fenced) = (String::new(), Vec::new(), false);
    for (line, number) in markdown.lines().zip(1..) {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fence && !fenced {
            lines.push((text.len(), number));
            line.split_whitespace().for_each(|word| text.extend([word, " "]));
        }
    }
    (text, lines)
}

/// Returns the text with spaces instead of what is between backticks, with the same length.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(n, part)| if n % 2 == 0 { part.to_owned() } else { " ".repeat(part.len()) });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns whether the test `FILE::NAME` exists.
fn exists(test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else { return false };
    let Ok(text) = read(path) else { return false };
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    match extension {
        Some("py") => text.contains(&format!("def {name}(")),
        Some("mjs") => ['"', '`'].iter().any(|quote| text.contains(&format!("test({quote}{name}"))),
        // The tasks are tests, too.
        _ => text.split_once(&format!("fn {name}(")).is_some_and(|(before, _)| {
            path.starts_with("xtask") || before.rsplit("\n\n").next().is_some_and(|head| head.contains("#[test]"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_tests_are_found() {
        let page = "It never\nfails. All `every` wall.\n```\nalways\n```\nNothing.\n";
        let errors = |entries: &str| errors_of("p.md", page, &Value::Table(entries.parse().unwrap()));
        assert_eq!(errors("'never fails' = {}\nno_promise = ['All', 'Nothing.']"), [""; 0]);
        let [first, second] = &errors("'It never fails' = {}\nno_promise = ['All']\n'gone' = {}")[..] else { panic!() };
        assert!(first.contains("`gone` 0 times") && second.starts_with("p.md:6: `nothing` needs a test"), "{second}");
        let entries =
            Value::Table("no_promise = []\n'every' = { tries = '2 cases', tests = ['a.rs::b'] }".parse().unwrap());
        assert_eq!(promises_of(&entries).collect::<Vec<_>>(), [("every", "2 cases", vec!["a.rs::b"])]);
        let own = "xtask/src/docs/promises.rs::sentences_and_tests_are_found";
        assert!(exists(own) && !exists(&own[..own.len() - 1]) && !exists("python/tests/test_run.py::test_no"));
    }
}
