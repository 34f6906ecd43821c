//! `cargo xtask deny` and `cargo xtask fuzz`, which need programs outside the Rust toolchain.

use crate::steps::{Problem, command, need, root, run};
use std::fs;

/// Checks advisories, licences, bans and sources of all dependencies with `deny.toml`.
pub fn deny(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("cargo deny --version", "Get it with `cargo install --locked cargo-deny`.")?;
    Ok(run(command("cargo deny --workspace check"))?)
}

/// Runs every target under `fuzz/` for some seconds.
pub fn fuzz(arguments: &[String]) -> Result<(), Problem> {
    let seconds: u32 = match arguments {
        [] => 60,
        [seconds] => seconds.parse().map_err(|_| Problem::Usage(format!("`{seconds}` is not a number of seconds")))?,
        _ => return Err(Problem::Usage("takes a number of seconds or nothing".into())),
    };
    let advice = "Get it with `rustup toolchain install nightly` and `cargo install --locked cargo-fuzz`.";
    need("cargo +nightly fuzz --version", advice)?;
    for target in targets()? {
        // The first folder receives what the fuzzer finds; the second is kept in the repository.
        let (found, kept) = (format!("fuzz/target/corpus/{target}"), format!("fuzz/corpus/{target}"));
        for folder in [&found, &kept] {
            fs::create_dir_all(root().join(folder)).map_err(|error| format!("{folder}: {error}"))?;
        }
        run(command(&format!("cargo +nightly fuzz run {target} {found} {kept} -- -max_total_time={seconds}")))?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        files.filter_map(|file| file.ok()?.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}
