//! `cargo xtask book`: the documentation as a book, with the playground.

use crate::playground;
use crate::steps::{Problem, command, need, run, target};

/// The playground in the book.
const PLAYGROUND: &str = "playground.html";

/// Builds `docs/` with mdBook, and the playground beside it.
pub fn book(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("mdbook --version", "Get it with `cargo install --locked mdbook`.")?;
    let folder = target().join("book");
    let mut mdbook = command("mdbook build docs --dest-dir");
    mdbook.arg(&folder);
    run(mdbook)?;
    let page = folder.join(PLAYGROUND);
    std::fs::copy(playground::page()?, &page).map_err(|error| format!("{}: {error}", page.display()))?;
    eprintln!("open {}", folder.join("index.html").display());
    Ok(())
}
