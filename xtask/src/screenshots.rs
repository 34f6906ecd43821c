//! `cargo xtask screenshots`: the README's picture, from a report as a browser shows it, and that of a call that is watched.

use crate::steps::{Problem, command, need, root, run};
use std::fs;

/// A page's picture should not take long to load.
const MOST_BYTES: u64 = 200_000;

/// Each picture, and the test that writes it.
const PICTURES: [(&str, &str); 2] = [
    ("report-table1.png", "cargo test -p paceline-report --test browser -- --ignored --exact picture"),
    ("watch.png", "cargo test -p paceline-cli --features browser --test watch -- --ignored --exact picture"),
];

/// Photographs the plots of table 1's report, under two controllers, and the page of a call.
pub fn screenshots(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("chromium --version", "Get it from the system's packages: `apt-get install chromium`.")?;
    let folder = root().join("docs/images");
    for (name, test) in PICTURES {
        let picture = folder.join(name);
        let failed = |error| format!("{}: {error}", picture.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut photograph = command(test);
        photograph.env("PACELINE_PICTURE", &picture);
        run(photograph)?;
        let size = fs::metadata(&picture).map_err(failed)?.len();
        if size > MOST_BYTES {
            return Err(Problem::Failed(format!("{} has {size} bytes, more than {MOST_BYTES}", picture.display())));
        }
    }
    Ok(())
}
