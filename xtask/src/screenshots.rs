//! `cargo xtask screenshots`: the README's picture, from a report as a browser shows it.

use crate::steps::{Problem, command, need, root, run};
use std::fs;

/// A README's picture should not take long to load.
const MOST_BYTES: u64 = 200_000;

/// Photographs the plots of table 1's report, under two controllers.
pub fn screenshots(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("chromium --version", "Get it from the system's packages: `apt-get install chromium`.")?;
    let folder = root().join("docs/images");
    let picture = folder.join("report-table1.png");
    let failed = |error| format!("{}: {error}", picture.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut photograph = command("cargo test -p paceline-report --test browser -- --ignored --exact picture");
    photograph.env("PACELINE_PICTURE", &picture);
    run(photograph)?;
    let size = fs::metadata(&picture).map_err(failed)?.len();
    if size > MOST_BYTES {
        return Err(Problem::Failed(format!("{} has {size} bytes, more than {MOST_BYTES}", picture.display())));
    }
    Ok(())
}
