//! `cargo xtask screenshots`: the README's picture, from a report as a browser shows it.

use crate::steps::{Problem, command, need, program, root, run, target};
use std::fs;

const RUN: &str = "run mmsys16/table1 --controller gcc-2016,fixed --out";
/// Width and height, pixels.
const SIZE: &str = "1200,1000";
/// A README's picture should not take long to load.
const MOST_BYTES: u64 = 200_000;

/// Runs table 1 under two controllers and photographs the plots of its report.
pub fn screenshots(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("chromium --version", "Get it from the system's packages: `apt-get install chromium`.")?;
    let work = target().join("screenshots");
    let results = work.join("table1");
    let picture = root().join("docs/images/report-table1.png");
    let failed = |what: &str, error| format!("{what}: {error}");
    fs::create_dir_all(root().join("docs/images")).map_err(|error| failed("docs/images", error))?;
    run(command("cargo build --release -p paceline-cli"))?;
    run(program(target().join("release/paceline"), &format!("{RUN} {}", results.display())))?;
    let mut browser = command("chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars");
    browser
        .arg("--virtual-time-budget=10000")
        .arg(format!("--window-size={SIZE}"))
        .arg(format!("--user-data-dir={}", work.join("profile").display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}#plots", results.join("report.html").display()));
    run(browser)?;
    let size = fs::metadata(&picture).map_err(|error| failed("the picture", error))?.len();
    if size > MOST_BYTES {
        return Err(Problem::Failed(format!("{} has {size} bytes, more than {MOST_BYTES}", picture.display())));
    }
    Ok(())
}
