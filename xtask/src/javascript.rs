//! `cargo xtask javascript`: the package for JavaScript, and its tests under Node.

use crate::steps::{Problem, command, need, root, run, target};
use crate::wasm;
use std::fs;
use std::path::{Path, PathBuf};

/// Builds the package, tests it, and prints its folder.
pub fn javascript(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    println!("{}", package()?.display());
    Ok(())
}

/// The stage of the same name.
pub fn check(_: &str) -> Result<(), Problem> {
    package().map(|_| ())
}

fn package() -> Result<PathBuf, Problem> {
    need("node --version", "Get it with `apt-get install nodejs`.")?;
    let folder = target().join("javascript");
    let failed = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    copy(&root().join("js"), &folder).map_err(failed)?;
    fs::copy(wasm::module("npm")?, folder.join("paceline.wasm")).map_err(failed)?;
    let mut test = command("node --test test/");
    test.current_dir(&folder);
    run(test)?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to)?,
            false => fs::copy(&path, &to).map(|_| ())?,
        }
    }
    Ok(())
}
