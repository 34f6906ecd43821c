// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask screenshots`: the images of the playground, of a report and of the watch page.

use crate::playground;
use crate::steps::{Problem, check_size, command, create, need, no_arguments, root, run};

/// The maximum size of an image.
const MOST_BYTES: u64 = 400_000;

/// Each image, and the test that writes it.
const PICTURES: [(&str, &str); 3] = [
    ("playground.png", "cargo test -p paceline-wasm --test browser -- --ignored --exact writes_screenshot"),
    (
        "report-table1.png",
        "cargo test -p paceline-lab --test it -- --ignored --exact report::browser::writes_screenshot",
    ),
    (
        "watch.png",
        "cargo test -p paceline-cli --features browser --test realtime -- --ignored --exact watch::writes_screenshot",
    ),
];

/// Writes the images of the playground, of a report of table 1 with two controllers, and of the page of a call.
pub fn screenshots(arguments: &[String]) -> Result<(), Problem> {
    no_arguments(arguments)?;
    need("chromium --version", "Get it from the system's packages: `apt-get install chromium`.")?;
    playground::page()?;
    let folder = root().join("docs/images");
    for (name, test) in PICTURES {
        let picture = folder.join(name);
        create(&folder)?;
        run(command(test).env("PACELINE_PICTURE", &picture))?;
        check_size(&picture, MOST_BYTES)?;
    }
    Ok(())
}
