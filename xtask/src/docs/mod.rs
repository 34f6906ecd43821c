// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask docs`: checks the documentation. Every link has a target, every command exists, each promise has a test, and the output
//! of ```` ```sh ```` blocks is the text after them.
//!
//! | block | check |
//! |---|---|
//! | `sh` | all blocks of a page run in order and must succeed |
//! | `text` after `sh` | is the output of the block; a line `…` stands for any lines |
//! | `console` | is not run; every `paceline` and `cargo xtask` command in it must exist |
//!
//! With `--accept` the `text` blocks are rewritten with what is printed.

mod commands;
mod follow;
mod links;
pub mod pages;
pub mod promises;

use crate::steps::{Problem, command, has_flag, run, target};
use crate::{book, reference};
use pages::Page;

/// Checks every page, or rewrites the outputs in them.
pub fn docs(arguments: &[String]) -> Result<(), Problem> {
    let is_accepted = has_flag(arguments, "--accept")?;
    reference::paceline()?;
    check_pages(is_accepted)
}

/// Checks every page with the command that was built for the tests, and runs the blocks with the faster one of the profile `release`.
pub fn check() -> Result<(), Problem> {
    check_pages(false)
}

fn check_pages(is_accepted: bool) -> Result<(), Problem> {
    run(command("cargo build --quiet --release"))?;
    let paceline = target().join("debug");
    let book = book::pages(&paceline.join("paceline"))?;
    let pages = Page::all(&book)?;
    let mut wrong = links::find_errors(&pages, &book)?;
    wrong.extend(promises::find_errors()?);
    wrong.extend(commands::find_errors(&pages, &paceline));
    wrong.extend(follow::find_errors(&pages, is_accepted)?);
    if wrong.is_empty() {
        eprintln!("\n{} pages checked", pages.len());
        return Ok(());
    }
    Err(Problem::Failed(format!("{} errors in the pages\n\n{}", wrong.len(), wrong.join("\n"))))
}
