//! `cargo xtask scoreboard`: the verdicts on every paper's values, kept under `scoreboard/` so that a change which moves one
//! shows it in its diff.

use crate::steps::{Problem, command, program, root, run, shown, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What the command writes, in a folder for each paper.
const FILES: [&str; 2] = ["scoreboard.json", "scoreboard.md"];

/// Writes the scoreboards; `--check`: writes them elsewhere, and fails if they are not those that are kept.
pub fn scoreboard(arguments: &[String]) -> Result<(), Problem> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(Problem::Usage("takes `--check` or nothing".into())),
    };
    run(command("cargo build --quiet --release"))?;
    let kept = root().join("scoreboard");
    let place = if check { target().join("scoreboard") } else { kept.clone() };
    for paper in papers()? {
        make(&paper, &place.join(&paper))?;
        if check {
            compare(&kept.join(&paper), &place.join(&paper))?;
        }
    }
    Ok(())
}

/// The folders of scenarios that have a file of constants: one each paper.
fn papers() -> Result<Vec<String>, String> {
    let folder = root().join("scenarios");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| p.join("constants.toml").is_file());
    let mut names: Vec<String> = folders.filter_map(|p| Some(p.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

fn paceline(arguments: &str) -> std::process::Command {
    program(target().join("release/paceline"), arguments)
}

fn make(paper: &str, folder: &Path) -> Result<(), String> {
    for file in FILES.map(|name| folder.join(name)).iter().filter(|file| file.exists()) {
        fs::remove_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut reproduce = paceline(&format!("reproduce {paper} --out"));
    reproduce.arg(folder).stdout(Stdio::null());
    eprintln!("\n==> {}", shown(&reproduce));
    let status = reproduce.status().map_err(|error| format!("`{}` did not start: {error}", shown(&reproduce)))?;
    // 1 is a claim that does not hold, which the scoreboard says.
    match status.code() {
        Some(0 | 1) if FILES.iter().all(|name| folder.join(name).is_file()) => Ok(()),
        _ => Err(format!("`{}` failed: {status}", shown(&reproduce))),
    }
}

const ACCEPT: &str = "if that is meant, `cargo xtask scoreboard` accepts it; say why in the commit";

/// What moved, and whether the files say it.
fn compare(kept: &Path, made: &Path) -> Result<(), String> {
    let mut diff = paceline("diff");
    diff.args([kept, made]);
    let here = kept.strip_prefix(root()).unwrap_or(kept);
    run(diff).map_err(|_| format!("{} is not what this version comes to; {ACCEPT}", here.display()))?;
    for name in FILES {
        let read = |folder: &Path| {
            let path: PathBuf = folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (old, new) = (read(kept)?, read(made)?);
        if old != new {
            let same = old.lines().zip(new.lines()).take_while(|(o, n)| o == n).count();
            let line = |text: &str| text.lines().nth(same).unwrap_or("").to_owned();
            let (old, new) = (line(&old), line(&new));
            let at = format!("{}:{}", here.join(name).display(), same + 1);
            return Err(format!("no number moved, but {at} says\n  {old}\nand this version\n  {new}\n{ACCEPT}"));
        }
    }
    Ok(())
}
