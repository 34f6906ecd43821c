// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask wheel`: the Python package as a wheel for every Linux of the last decade (manylinux, PEP 600).
//!
//! The wheel is linked by zig against an old C library, checked by auditwheel, and tried in an environment of its own. The source
//! distribution is unpacked, and a wheel is built from it.

use crate::steps::{Problem, command, create, failed, files_in, has_flag, output, program, root, run, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest C library for which Rust builds, glibc 2.17 of 2012.
const POLICY: &str = "manylinux_2_17";
const TOOLS: &str = "pip install --quiet maturin>=1.9,<2 ziglang auditwheel";
/// Makes a run and the command with the installed wheel.
const TRIAL: &str = "import paceline; print(paceline.run('mmsys16/table1').trace_hash)";

/// Builds the wheel and the source distribution below `target/wheels`; with `--sdist` only the latter.
pub fn wheel(arguments: &[String]) -> Result<(), Problem> {
    let only_sdist = has_flag(arguments, "--sdist")?;
    let (tools, wheels) = (target().join("wheel-tools"), target().join("wheels"));
    let bin = environment(&tools)?;
    run(in_environment(&bin, TOOLS))?;
    let _ = fs::remove_dir_all(&wheels);
    if !only_sdist {
        manylinux(&bin, &wheels)?;
    }
    sdist(&bin, &wheels)
}

/// Builds the source distribution, and a wheel from it with the profile of tests, whose libraries exist.
fn sdist(bin: &Path, wheels: &Path) -> Result<(), Problem> {
    let sources = target().join("sdist");
    let _ = fs::remove_dir_all(&sources);
    run(in_environment(bin, &format!("maturin sdist --out {}", sources.display())))?;
    let archive = only_file(&sources)?;
    let unpacked = sources.join("unpacked");
    create(&unpacked)?;
    run(command("tar --extract --gzip --file").arg(&archive).arg("--directory").arg(&unpacked))?;
    run(in_environment(bin, &format!("maturin build --profile dev --out {}", sources.join("wheel").display()))
        .current_dir(only_file(&unpacked)?)
        .env("CARGO_TARGET_DIR", target()))?;
    let hash = try_wheel(&only_file(&sources.join("wheel"))?)?;
    create(wheels)?;
    let kept = wheels.join(archive.file_name().unwrap_or_default());
    fs::rename(&archive, &kept).map_err(failed(&kept))?;
    println!("{}: trace {}", kept.strip_prefix(root()).unwrap_or(&kept).display(), hash.trim());
    Ok(())
}

/// Builds and tries the wheel.
fn manylinux(bin: &Path, wheels: &Path) -> Result<(), Problem> {
    let build = format!("maturin build --compatibility {POLICY} --zig --out {}", wheels.display());
    run(in_environment(bin, &build))?;
    let wheel = only_file(wheels)?;
    let (shown, _) = output(in_environment(bin, &format!("auditwheel show {}", wheel.display())))?;
    if !shown.contains(POLICY) {
        return Err(Problem::Failed(format!("the wheel does not keep to {POLICY}:\n{shown}")));
    }
    let hash = try_wheel(&wheel)?;
    let bytes = fs::metadata(&wheel).map_err(|error| error.to_string())?.len();
    let size = bytes as f64 / 1e6;
    println!("{}: {size:.1} MB, trace {}", wheel.strip_prefix(root()).unwrap_or(&wheel).display(), hash.trim());
    Ok(())
}

/// Installs the wheel into an environment of its own, makes a run and calls the command. Returns the trace hash.
fn try_wheel(wheel: &Path) -> Result<String, Problem> {
    let trial = target().join("wheel-trial");
    let _ = fs::remove_dir_all(&trial);
    let bin = environment(&trial)?;
    run(in_environment(&bin, &format!("pip install --quiet {}", wheel.display())))?;
    let (hash, _) = output(program(bin.join("python"), "-c").arg(TRIAL).current_dir(&trial))?;
    run(in_environment(&bin, "paceline --version"))?;
    Ok(hash)
}

/// Creates a Python environment if there is none, and returns the folder of its programs.
fn environment(place: &Path) -> Result<PathBuf, Problem> {
    let bin = place.join("bin");
    if !bin.join("pip").is_file() {
        run(command("python3 -m venv").arg(place))?;
    }
    Ok(bin)
}

/// Returns a command line whose program is in this folder, which also precedes the path.
fn in_environment(bin: &Path, line: &str) -> Command {
    let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
    let mut command = program(bin.join(name), arguments);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin.to_path_buf()].into_iter().chain(std::env::split_paths(&path)));
    command.env("PATH", path.unwrap_or_default()).env("VIRTUAL_ENV", bin.parent().unwrap_or(bin));
    command
}

fn only_file(folder: &Path) -> Result<PathBuf, String> {
    let files = files_in(folder)?;
    <[PathBuf; 1]>::try_from(files)
        .map(|[file]| file)
        .map_err(|files| format!("{} contains {} files, not one", folder.display(), files.len()))
}
