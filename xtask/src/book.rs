//! `cargo xtask book`: the documentation as a book.

use crate::steps::{Problem, command, need, run, target};

/// Builds `docs/` with mdBook.
pub fn book(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("mdbook --version", "Get it with `cargo install --locked mdbook`.")?;
    let folder = target().join("book");
    let mut mdbook = command("mdbook build docs --dest-dir");
    mdbook.arg(&folder);
    run(mdbook)?;
    eprintln!("open {}", folder.join("index.html").display());
    Ok(())
}
