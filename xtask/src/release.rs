//! `cargo xtask release`: the command as an archive for Linux: stripped binary, man pages, completions, licences, checksum.
//!
//! Times and owners in the archive are fixed, so that equal binaries make equal archives. It is unpacked and tried.

use crate::check::check_targets;
use crate::dist;
use crate::notices::notices;
use crate::scoreboard::all_results;
use crate::steps::{Problem, command, copy, files_in, need, output, program, root, run, target, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shells for which the archive has completions, and the name of each file.
const SHELLS: [(&str, &str); 3] = [("bash", "paceline.bash"), ("zsh", "_paceline"), ("fish", "paceline.fish")];

/// Files of the repository that are in the archive.
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD_PARTY.md"];

/// The build of `--quick`, with the features of the published one.
const QUICK: &str = "cargo build --quiet --locked --release --package paceline-cli --features testbed";

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
    let bytes = fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len();
    let needs = glibc(&content.join("bin/paceline"))?;
    let shown = archive.strip_prefix(root()).unwrap_or(&archive).display();
    println!("{shown}: {:.1} MB, needs glibc {needs} or later", bytes as f64 / 1e6);
    Ok(())
}

/// Writes what the archive contains.
fn fill(content: &Path, binary: &Path) -> Result<(), Problem> {
    let [bin, man, completions] = ["bin", "share/man/man1", "share/completions"].map(|part| content.join(part));
    fs::create_dir_all(&man).map_err(|error| format!("{}: {error}", man.display()))?;
    let command_of = |arguments: &str| program(bin.join("paceline"), arguments);
    copy(binary, &bin.join("paceline"))?;
    let mut strip = command("strip --strip-all");
    strip.arg(bin.join("paceline"));
    run(strip)?;
    let mut pages = command_of("man");
    pages.arg(&man);
    run(pages)?;
    for (shell, file) in SHELLS {
        let (script, _) = output(command_of(&format!("completions {shell}")))?;
        write(&completions.join(file), script)?;
    }
    FILES.iter().try_for_each(|file| copy(&root().join(file), &content.join(file)))?;
    Ok(write(&content.join("LICENCES-OF-LIBRARIES.txt"), notices("paceline-cli", "testbed")?)?)
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
    run(within(folder, tar))?;
    run(within(folder, command(&format!("gzip --force --best --no-name {archive}"))))?;
    Ok(folder.join(format!("{archive}.gz")))
}

/// Writes the checksums of the archives.
fn sum(folder: &Path) -> Result<(), Problem> {
    let (sums, _) = output(within(folder, {
        let mut shell = command("sh -c");
        shell.arg("sha256sum *.tar.gz");
        shell
    }))?;
    Ok(write(&folder.join("SHA256SUMS"), sums)?)
}

/// Checks the sum, unpacks the archive and makes a run with the command, which finds nothing of this repository.
fn try_archive(folder: &Path, name: &str) -> Result<(), Problem> {
    run(within(folder, command("sha256sum --check --quiet SHA256SUMS")))?;
    let trial = folder.join("trial");
    fs::create_dir_all(&trial).map_err(|error| format!("{}: {error}", trial.display()))?;
    run(within(&trial, command(&format!("tar --extract --gzip --file ../{name}.tar.gz"))))?;
    let unpacked = trial.join(name);
    let paceline = |arguments: &str| within(&trial, program(unpacked.join("bin/paceline"), arguments));
    let (version, _) = output(paceline("-V"))?;
    let mut trial_run = paceline(TRIAL);
    trial_run.env_clear();
    // Exit code 1: a bound of the scenario fails in such a short run.
    let printed = trial_run.output().map_err(|error| format!("{}: {error}", unpacked.display()))?;
    let is_run = matches!(printed.status.code(), Some(0 | 1)) && printed.stdout.starts_with(b"{");
    let has_pages = unpacked.join("share/man/man1/paceline-run.1").is_file();
    fs::remove_dir_all(&trial).map_err(|error| format!("{}: {error}", trial.display()))?;
    if !is_run || !has_pages {
        let said = String::from_utf8_lossy(&printed.stderr).into_owned();
        return Err(Problem::Failed(format!("the unpacked command does not run (or lacks man pages): {said}")));
    }
    eprintln!("{}", version.trim());
    Ok(())
}

fn within(folder: &Path, mut command: Command) -> Command {
    command.current_dir(folder);
    command
}

fn host() -> Result<String, Problem> {
    let (text, _) = output(command("rustc -vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or_else(|| "`rustc -vV` names no host".to_owned())?.to_owned())
}

/// Returns the newest version of glibc that the binary names: it starts with that one or later.
fn glibc(binary: &Path) -> Result<String, String> {
    let bytes = fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let mut newest = 0;
    for at in bytes.windows(8).enumerate().filter(|(_, word)| word == b"GLIBC_2.").map(|(at, _)| at + 8) {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
        newest = newest.max(digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0')));
    }
    Ok(format!("2.{newest}"))
}
