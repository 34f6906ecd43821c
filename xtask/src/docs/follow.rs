// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the commands of a page.
//!
//! All `sh` blocks of a page are one script, so that `cd` and `export` affect later blocks. The script runs in an empty folder
//! and stops at the first command that fails. Two commands are changed:
//!
//! * `git clone` clones this repository, because the address in the page is an example;
//! * `cargo` builds in this repository, because the clone would build everything again.

use super::pages::{Block, Page};
use crate::steps::{create, failed, read, root, target, write};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands of a build with features, which the profile `release` lacks.
const WITH_FEATURES: [&str; 4] = ["paceline call ", "paceline link ", "paceline recv ", "paceline send "];

/// Returns all errors. If `is_accepted`, outputs that differ are rewritten where their lines can be recognized.
pub fn find_errors(pages: &[Page], is_accepted: bool) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| page.blocks.iter().any(|b| b.language == "sh")) {
        let mut blocks = page.blocks.iter().filter(|b| b.language == "sh");
        let needs_features = blocks.any(|block| WITH_FEATURES.iter().any(|command| block.text.contains(command)));
        let folder = target().join(if needs_features { "debug" } else { "release" });
        wrong.extend(follow(page, &folder, is_accepted)?);
    }
    Ok(wrong)
}

fn follow(page: &Page, folder: &Path, is_accepted: bool) -> Result<Vec<String>, String> {
    eprintln!("\n==> following {}", page.path.display());
    let scratch = target().join("docs").join(page.path.with_extension(""));
    let (work, out) = (scratch.join("work"), scratch.join("out"));
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(failed(&scratch))?;
    }
    [&work, &out].into_iter().try_for_each(|folder| create(folder))?;

    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script(page, &out)).current_dir(&work).stdin(Stdio::null());
    // A page that sets the path itself is not helped.
    if !page.blocks.iter().any(|b| b.language == "sh" && b.text.contains("export PATH=")) {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
        shell.env("PATH", std::env::join_paths(paths).map_err(|error| error.to_string())?);
    }
    let status = shell.status().map_err(|error| format!("`sh` did not start: {error}"))?;

    let mut wrong = Vec::new();
    for (number, block) in page.blocks.iter().enumerate().filter(|(_, b)| b.language == "sh") {
        let Ok(printed) = fs::read_to_string(out.join(number.to_string())) else { break };
        let last = !out.join(format!("{number}.done")).exists();
        if last {
            wrong.push(format!("{}: ended with {status}:\n{}{printed}", page.place(block.line), block.text));
        }
        let shown = page.blocks.get(number + 1).filter(|next| next.language == "text" && !last);
        let Some((shown, difference)) = shown.and_then(|shown| Some((shown, difference(page, shown, &printed)?)))
        else {
            continue;
        };
        match accepted(&shown.text, &printed).filter(|_| is_accepted) {
            Some(text) => rewrite(page, shown, &text)?,
            None => wrong.push(difference),
        }
    }
    Ok(wrong)
}

/// Writes this text in place of a block of a page of the repository. It has as many lines, so other blocks keep their place.
fn rewrite(page: &Page, shown: &Block, text: &str) -> Result<(), String> {
    let path = root().join(&page.path);
    let page_text = read(&path)?;
    let mut lines: Vec<&str> = page_text.lines().collect();
    let length = shown.text.lines().count();
    lines.splice(shown.line..shown.line + length, text.lines());
    eprintln!("accepted: {}", page.place(shown.line));
    write(&path, lines.join("\n") + "\n")
}

/// Returns the block with what is printed now: each group of lines, between two `…`, is that of the output which has most lines of
/// the same form, and at least half of them.
fn accepted(shown: &str, printed: &str) -> Option<String> {
    let (shown, printed): (Vec<_>, Vec<_>) = (shown.trim_end().lines().collect(), printed.trim_end().lines().collect());
    let mut from = 0;
    let mut accepted = Vec::new();
    for group in shown.split(|line| line.trim() == "…") {
        let equal = |at: usize| {
            printed[at..].iter().zip(group).filter(|(new, old)| form_of_line(new) == form_of_line(old)).count()
        };
        let last = printed.len().checked_sub(group.len())?;
        let at = (from..=last).max_by_key(|at| (equal(*at), std::cmp::Reverse(*at)))?;
        if equal(at) * 2 < group.len() {
            return None;
        }
        from = at + group.len();
        accepted.push(printed[at..from].iter().map(|line| line.trim_end()).collect::<Vec<_>>());
    }
    Some(accepted.join(&"…").join("\n"))
}

/// Returns a line with numbers as `0` and without blanks.
fn form_of_line(line: &str) -> String {
    let mut form = String::new();
    for c in line.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '0'..='9' | '.' | '−' | '-' if form.ends_with('0') => {}
            '0'..='9' => form.push('0'),
            _ => form.push(c),
        }
    }
    form
}

/// Returns the script of a page. Each block prints to a file of its own and creates another file at its end.
fn script(page: &Page, out: &Path) -> String {
    let mut script = "set -e\n".to_owned();
    for (number, block) in page.blocks.iter().enumerate().filter(|(_, b)| b.language == "sh") {
        let file = out.join(number.to_string());
        script += &format!("exec > '{}' 2>&1\n", file.display());
        for line in block.text.lines() {
            script += &command_to_run(line);
            script.push('\n');
        }
        script += &format!(": > '{}.done'\n", file.display());
    }
    script
}

fn command_to_run(line: &str) -> String {
    let (root, target) = (root().display(), target());
    if let Some(address) = line.strip_prefix("git clone ") {
        let folder = address.trim_end_matches(".git").rsplit('/').next().unwrap_or("paceline");
        let cloned = if is_repository() {
            format!("git clone --quiet '{root}' {folder}")
        } else {
            eprintln!("no git, or no repository: `{line}` is left out");
            format!("mkdir {folder}")
        };
        return format!("{cloned}\nln -s '{}' {folder}/target", target.display());
    }
    match line.starts_with("cargo ") {
        true => format!("(cd '{root}' && {line})"),
        false => line.to_owned(),
    }
}

fn is_repository() -> bool {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--git-dir"]).current_dir(root()).stdout(Stdio::null()).stderr(Stdio::null());
    git.status().is_ok_and(|status| status.success())
}

/// Returns how the page differs from the output.
fn difference(page: &Page, shown: &Block, printed: &str) -> Option<String> {
    let missing = first_missing(&shown.text, printed)?;
    let place = page.place(shown.line);
    Some(format!("{place}: shows lines that are not printed:\n{missing}\nThe output is:\n{printed}"))
}

/// Returns the first group of lines, between two `…`, that is not in the output after the group before it.
fn first_missing(shown: &str, printed: &str) -> Option<String> {
    let lines = |text: &str| text.lines().map(without_wall_time).collect::<Vec<_>>();
    let (shown, printed) = (lines(shown.trim_end()), lines(printed.trim_end()));
    let mut from = 0;
    for run in shown.split(|line| line.trim() == "…").filter(|run| !run.is_empty()) {
        let found = printed[from..].windows(run.len()).position(|window| window == run);
        match found {
            Some(at) => from += at + run.len(),
            None => return Some(run.join("\n")),
        }
    }
    None
}

/// Returns a line without trailing blanks and without the wall time.
fn without_wall_time(line: &str) -> String {
    let line = line.trim_end();
    const BEFORE: &str = "simulated in ";
    match line.split_once(BEFORE).and_then(|(start, rest)| Some((start, rest.split_once(" ms")?.1))) {
        Some((start, rest)) => format!("{start}{BEFORE}… ms{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_lines_must_be_printed_in_order() {
        let printed = "one\ntwo  \n3 s simulated in 26 ms · seed 1\nfour\n";
        for shown in ["one\ntwo", "two\n3 s simulated in 9999 ms · seed 1", "one\n…\nfour", "…\nfour", ""] {
            assert_eq!(first_missing(shown, printed), None, "{shown}");
        }
        for shown in ["two\none", "one\nfour", "two\n…\none", "3 s simulated in 26 ms · seed 2", "on"] {
            assert!(first_missing(shown, printed).is_some(), "{shown}");
        }
    }

    /// Groups keep their order and their `…`; what has no line of the same form is not accepted.
    #[test]
    fn outputs_are_accepted_by_the_form_of_their_lines() {
        let printed = "title\nrate  1.25 Mbit/s\nqueue 31 ms\nrate  0.5 Mbit/s\nend";
        assert_eq!(
            accepted("title\n…\nqueue 8 ms\nrate 12 Mbit/s\n", printed).unwrap(),
            "title\n…\nqueue 31 ms\nrate  0.5 Mbit/s"
        );
        assert_eq!(accepted("rate 3 Mbit/s", printed).unwrap(), "rate  1.25 Mbit/s", "the first of equal ones");
        assert_eq!(accepted("end\n…\ntitle", printed), None, "in order");
        assert_eq!(accepted("loss 3 %", printed), None);
    }

    #[test]
    fn page_runs_to_its_end_or_to_the_first_failure() {
        let text = |last: &str| {
            format!(
                "```sh\nx=41\necho $((x + 1))\n```\n\n```text\n42\n```\n\n```sh\n{last}\necho $x\n```\n\n```text\n41\n```\n"
            )
        };
        let follow = |last: &str| {
            let page = Page::parse(format!("test-{}.md", last.len()).into(), &text(last));
            follow(&page, Path::new(""), false).unwrap()
        };
        assert_eq!(follow("true"), Vec::<String>::new());
        let [failed] = &follow("ls no-such-file-here")[..] else { panic!("expected one error") };
        assert!(failed.contains("no-such-file-here\necho $x") && failed.contains("test-20.md:10"), "{failed}");
        let [differs] = &follow("x=40; echo off")[..] else { panic!("expected one error") };
        assert!(differs.contains("not printed:\n41\n") && differs.contains("off\n40"), "{differs}");
    }
}
