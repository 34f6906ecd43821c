// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask test package`: the crates that programs embed, as they are published.
//!
//! Each is packaged, unpacked and built alone, without a C compiler. A program outside the workspace then registers a controller
//! of its own with the unpacked crates.

use crate::steps::{Problem, command, copy, create, output, root, run, target, write};
use std::fs;
use std::process::Command;

/// The crates that programs embed. They need no C compiler and no other crate of the workspace.
pub const EMBEDDABLE: [&str; 3] = ["paceline-units", "paceline", "paceline-wire"];

/// The crates that are published: those, and the one for a stack that programs use. None needs a C compiler.
pub const PUBLISHED: [&str; 4] = ["paceline-units", "paceline", "paceline-wire", "paceline-quinn"];

/// The version of every crate of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packages the crates and builds what the packages contain.
pub fn check(_: &str) -> Result<(), Problem> {
    no_dependency_compiles_c()?;
    let mut package = command("cargo package --quiet --locked --allow-dirty");
    // Without `--no-verify`, Cargo builds each package alone.
    run(without_c(package.args(PUBLISHED.iter().flat_map(|name| ["--package", name]))))?;
    consumer()?;
    linked_texts()
}

/// The guide and the licences of a package are links, which a system without them stores as paths.
fn linked_texts() -> Result<(), Problem> {
    for name in PUBLISHED {
        let guide = (name == "paceline").then_some("library.md");
        for file in ["LICENSE-MIT", "LICENSE-APACHE"].into_iter().chain(guide) {
            let path = root().join("crates").join(name).join(file);
            if fs::metadata(&path).map_or(0, |about| about.len()) < 500 {
                return Err(Problem::Failed(format!("{} is not the text that it links to", path.display())));
            }
        }
    }
    Ok(())
}

/// Builds and runs the program of `xtask/consumer` with the unpacked crates.
fn consumer() -> Result<(), Problem> {
    let folder = target().join("package-trial");
    let _ = fs::remove_dir_all(&folder);
    create(&folder)?;
    for name in EMBEDDABLE {
        run(command("tar --extract --gzip --directory")
            .arg(&folder)
            .arg("--file")
            .arg(target().join(format!("package/{name}-{VERSION}.crate"))))?;
    }
    let fill = |text: &str| text.replace("FOLDER", &folder.display().to_string()).replace("VERSION", VERSION);
    write(&folder.join("Cargo.toml"), fill(include_str!("../consumer/Cargo.toml")))?;
    write(&folder.join("src/main.rs"), include_str!("../consumer/main.rs"))?;
    // The versions of the workspace, so that nothing new is fetched.
    copy(&root().join("Cargo.lock"), &folder.join("Cargo.lock"))?;
    let mut build = command("cargo run --quiet --manifest-path");
    build.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(target().join("package-trial-build"));
    let (printed, _) = output(without_c(&mut build))?;
    match printed.contains("Half") {
        true => Ok(()),
        false => Err(Problem::Failed(format!("the consumer of the packages printed `{}`", printed.trim()))),
    }
}

/// Replaces the C compilers by a program that fails.
fn without_c(command: &mut Command) -> &mut Command {
    command.env("CC", "/bin/false").env("CXX", "/bin/false")
}

/// Libraries with which build scripts compile or search for C, besides those that end in `-sys`.
const C_TOOLS: [&str; 4] = ["bindgen", "cc", "cmake", "pkg-config"];

/// A build script may find a compiler by itself, so the names of the dependencies are checked, too.
fn no_dependency_compiles_c() -> Result<(), Problem> {
    for name in PUBLISHED {
        let line = "cargo tree --locked --edges normal,build --prefix none --format {p} --package";
        let (tree, _) = output(command(&format!("{line} {name}")))?;
        let names = tree.lines().filter_map(|line| line.split(' ').next());
        let found = names.into_iter().find(|name| C_TOOLS.contains(name) || name.ends_with("-sys"));
        if let Some(found) = found {
            return Err(Problem::Failed(format!("{name} depends on {found}, which compiles C or links a C library")));
        }
    }
    Ok(())
}
