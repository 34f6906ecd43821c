// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask release`: the command as an archive for Linux: stripped binary, man pages, completions, licences, checksum.
//!
//! Times and owners in the archive are fixed, so that equal binaries make equal archives. It is unpacked and tried.

use crate::check::check_targets;
use crate::dist;
use crate::notices::notices;
use crate::scoreboard::all_results;
use crate::steps::{Problem, command, copy, create, failed, files_in, need, output, program, root, run, target, write};
use std::fs;
use std::path::{Path, PathBuf};

/// The shells for which the archive has completions, and the name of each file.
const SHELLS: [(&str, &str); 3] = [("bash", "paceline.bash"), ("zsh", "_paceline"), ("fish", "paceline.fish")];

/// Files of the repository that are in the archive.
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD_PARTY.md"];

/// The build of `--quick`, with the features of the published one.
const QUICK: &str = "cargo build --quiet --locked --release --package paceline-cli --features testbed,mcp";

/// A run that the unpacked command makes.
const TRIAL: &str = "run mmsys16/table1 --set duration=10s --json";

/// Builds the archive below `target/release-archive`; with `--quick` from the profile `release`, to try this task. With `--results` a
/// second archive has the complete results that `cargo xtask scoreboard` left.
pub fn release(arguments: &[String]) -> Result<(), Problem> {
    if let Some(unknown) = arguments.iter().find(|word| !["--quick", "--results"].contains(&word.as_str())) {
        return Err(Problem::Usage(format!("takes --quick, --results or nothing, not {unknown}")));
    }
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    let is_quick = has("--quick");
    let results = has("--results").then(all_results).transpose()?;
    need("strip --version", "Get it with the system's packages: `apt-get install binutils`.")?;
    check_targets(false)?;
    let binary = match is_quick {
        true => {
            run(command(QUICK))?;
            target().join("release/paceline")
        }
        false => dist::guided()?.join("paceline"),
    };
    let name = format!("paceline-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let folder = target().join("release-archive");
    let _ = fs::remove_dir_all(&folder);
    let content = folder.join(&name);
    fill(&content, &binary)?;
    let archive = pack(&folder, &name)?;
    if let Some(parts) = results {
        pack_results(&folder, parts)?;
    }
    sum(&folder)?;
    try_archive(&folder, &name)?;
    let bytes = fs::metadata(&archive).map_err(failed(&archive))?.len();
    let needs = glibc(&content.join("bin/paceline"))?;
    let shown = archive.strip_prefix(root()).unwrap_or(&archive).display();
    println!("{shown}: {:.1} MB, needs glibc {needs} or later", bytes as f64 / 1e6);
    Ok(())
}

/// Writes what the archive contains.
fn fill(content: &Path, binary: &Path) -> Result<(), Problem> {
    let [bin, man, completions] = ["bin", "share/man/man1", "share/completions"].map(|part| content.join(part));
    create(&man)?;
    let command_of = |arguments: &str| program(bin.join("paceline"), arguments);
    copy(binary, &bin.join("paceline"))?;
    run(command("strip --strip-all").arg(bin.join("paceline")))?;
    run(command_of("man").arg(&man))?;
    for (shell, file) in SHELLS {
        let (script, _) = output(command_of(&format!("completions {shell}")))?;
        write(&completions.join(file), script)?;
    }
    FILES.iter().try_for_each(|file| copy(&root().join(file), &content.join(file)))?;
    Ok(write(&content.join("LICENCES-OF-LIBRARIES.txt"), notices("paceline-cli", "testbed,mcp")?)?)
}

/// Packs the results of papers and suites: pages, and JSON for `paceline diff` and `paceline suite --beside`.
fn pack_results(folder: &Path, parts: [PathBuf; 2]) -> Result<(), Problem> {
    let name = format!("paceline-{}-results", env!("CARGO_PKG_VERSION"));
    for part in parts {
        let to = folder.join(&name).join(part.file_name().unwrap_or_default());
        for path in files_in(&part)? {
            // A file of lines is the state of an interrupted suite.
            if path.is_file() && path.extension().is_none_or(|end| end != "jsonl") {
                copy(&path, &to.join(path.file_name().unwrap_or_default()))?;
            }
        }
    }
    pack(folder, &name)?;
    Ok(())
}

/// Packs the folder `name`.
fn pack(folder: &Path, name: &str) -> Result<PathBuf, Problem> {
    let (time, _) = output(command("git log -1 --format=%ct"))?;
    let archive = format!("{name}.tar");
    let mut tar = command("tar --sort=name --owner=0 --group=0 --numeric-owner");
    tar.arg(format!("--mtime=@{}", time.trim())).args(["--create", "--file", &archive, name]);
    run(tar.current_dir(folder))?;
    run(command(&format!("gzip --force --best --no-name {archive}")).current_dir(folder))?;
    Ok(folder.join(format!("{archive}.gz")))
}

/// Writes the checksums of the archives.
fn sum(folder: &Path) -> Result<(), Problem> {
    let (sums, _) = output(command("sh -c").arg("sha256sum *.tar.gz").current_dir(folder))?;
    Ok(write(&folder.join("SHA256SUMS"), sums)?)
}

/// Checks the sum, unpacks the archive and makes a run with the command, which finds nothing of this repository.
fn try_archive(folder: &Path, name: &str) -> Result<(), Problem> {
    run(command("sha256sum --check --quiet SHA256SUMS").current_dir(folder))?;
    let trial = folder.join("trial");
    create(&trial)?;
    run(command(&format!("tar --extract --gzip --file ../{name}.tar.gz")).current_dir(&trial))?;
    let unpacked = trial.join(name);
    let paceline = |arguments: &str| program(unpacked.join("bin/paceline"), arguments);
    let (version, _) = output(paceline("-V").current_dir(&trial))?;
    // Exit code 1: a bound of the scenario fails in such a short run.
    let printed = paceline(TRIAL)
        .current_dir(&trial)
        .env_clear()
        .output()
        .map_err(|error| format!("{}: {error}", unpacked.display()))?;
    let is_run = matches!(printed.status.code(), Some(0 | 1)) && printed.stdout.starts_with(b"{");
    let has_pages = unpacked.join("share/man/man1/paceline-run.1").is_file();
    fs::remove_dir_all(&trial).map_err(failed(&trial))?;
    if !is_run || !has_pages {
        let said = String::from_utf8_lossy(&printed.stderr).into_owned();
        return Err(Problem::Failed(format!("the unpacked command does not run (or lacks man pages): {said}")));
    }
    eprintln!("{}", version.trim());
    Ok(())
}

fn host() -> Result<String, String> {
    let (text, _) = output(command("rustc -vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// Returns the newest version of glibc that the binary names: it starts with that one or later.
fn glibc(binary: &Path) -> Result<String, String> {
    let bytes = fs::read(binary).map_err(failed(binary))?;
    let mut newest = 0;
    for at in bytes.windows(8).enumerate().filter(|(_, word)| word == b"GLIBC_2.").map(|(at, _)| at + 8) {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
        newest = newest.max(digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0')));
    }
    Ok(format!("2.{newest}"))
}
