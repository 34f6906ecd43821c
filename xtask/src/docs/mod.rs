//! `cargo xtask docs`: the pages hold what they say. Every link has a target, every command a meaning, and the blocks
//! of ```` ```sh ```` do what the text beside them shows.
//!
//! | block | what is done with it |
//! |---|---|
//! | `sh` | run as it stands, from top to bottom of its page; must end well |
//! | `text` after `sh` | must be what that block prints; a line of `…` stands for any lines |
//! | `console` | read only: every `paceline` and `cargo xtask` in it must be a command that there is |

mod commands;
mod follow;
mod links;
mod pages;

use crate::steps::{Problem, command, run, target};
use pages::Page;

/// Checks every page, with the release build.
pub fn docs(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    run(command("cargo build --quiet --release"))?;
    let paceline = target().join("release");
    let pages = Page::all()?;
    let mut wrong = links::wrong(&pages)?;
    wrong.extend(commands::wrong(&pages, &paceline));
    wrong.extend(follow::wrong(&pages, &paceline)?);
    if wrong.is_empty() {
        eprintln!("\n{} pages checked", pages.len());
        return Ok(());
    }
    Err(Problem::Failed(format!("{} of the pages' sayings do not hold\n\n{}", wrong.len(), wrong.join("\n"))))
}
