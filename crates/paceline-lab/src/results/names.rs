// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of the folders of runs.

use paceline_netsim::records::{RunHeader, SIMULATOR};
use std::path::{Component, Path};

/// Longest name of a run's folder, in bytes. File systems allow 255; temporary names are longer.
const LONGEST_NAME: usize = 160;

/// Returns the name of a run's folder: scenario, controllers, world, seed. It ends in the seed, so it is never a temporary
/// name. Two keys may have one name; [`free_name`] makes them distinct.
pub(crate) fn directory_name(header: &RunHeader) -> String {
    format!("{}-seed{}", plain_name(&header.scenario, &header.controllers, &header.world), header.seed)
}

/// Returns the first of `name`, `name-2`, `name-3` that does not exist and is not `taken`.
pub(crate) fn free_name(folder: &Path, name: &str, taken: impl Fn(&str) -> bool) -> String {
    // Some file systems ignore case: `taken` should, too.
    let numbered = (2_u64..).map(|n| format!("{name}-{n}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken(name) && !folder.join(name).exists()).expect("there is no last number")
}

/// Returns scenario, controllers and (except for the simulator) world as the beginning of a file name.
fn plain_name(scenario: &str, controllers: &[Option<String>], world: &str) -> String {
    let world = if world == SIMULATOR { String::new() } else { format!("-{world}") };
    let controllers: Vec<&str> = controllers.iter().flatten().map(String::as_str).collect();
    let controllers = if controllers.is_empty() { "none".to_owned() } else { controllers.join("+") };
    let mut name: String = format!("{scenario}-{controllers}{world}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' })
        .collect();
    if name.starts_with(['.', '-']) {
        name.insert(0, '_');
    }
    if name.len() > LONGEST_NAME {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        name.truncate(LONGEST_NAME - 9);
        name = format!("{name}-{}", &hash[..8]);
    }
    name
}

pub(crate) fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(scenario: &str, controllers: &[Option<&str>], seed: u64) -> String {
        name_in("sim", scenario, controllers, seed)
    }

    fn name_in(world: &str, scenario: &str, controllers: &[Option<&str>], seed: u64) -> String {
        directory_name(&RunHeader {
            scenario: scenario.to_owned(),
            world: world.to_owned(),
            seed,
            hops: Vec::new(),
            flows: Vec::new(),
            controllers: controllers.iter().map(|c| c.map(str::to_owned)).collect(),
            signals: Vec::new(),
        })
    }

    #[test]
    fn directory_names_are_plain_short_and_distinct() {
        assert_eq!(name("mmsys16/table1", &[Some("gcc-2016"), None], 7), "mmsys16_table1-gcc-2016-seed7");
        assert_eq!(name("x", &[Some("a"), Some("b")], 0), "x-a+b-seed0");
        assert_eq!(name_in("testbed", "x", &[Some("a"), Some("b")], 0), "x-a+b-testbed-seed0");
        assert_eq!(name("x", &[None], u64::MAX), format!("x-none-seed{}", u64::MAX));
        assert_eq!(name("../é\\ü: *", &[], 1), "_.._______-none-seed1");
        let long = name(&"long/".repeat(100), &[Some("gcc-2016")], 3);
        assert!(long.len() < 200 && long.ends_with("-seed3"), "{long}");
        assert_ne!(long, name(&"long/".repeat(101), &[Some("gcc-2016")], 3));
        assert!(!crate::results::files::is_transient(&name("x.tmp-1-2", &[], 5)));
    }

    #[test]
    fn plain_names_have_one_component() {
        assert!(is_plain_name("a-b.c+d"));
        for bad in ["", ".", "..", "a/b", "../a", "/a", "a/"] {
            assert!(!is_plain_name(bad), "{bad}");
        }
    }
}
