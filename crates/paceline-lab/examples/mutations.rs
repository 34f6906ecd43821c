// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs suites under GoogCC with one fault each, and prints for each fault which bounds change their verdict.
//!
//! ```text
//! cargo run --release -p paceline-lab --example mutations -- SUITE… [--repeats N] [--only NAME]
//! ```

#[path = "../tests/it/mutations/faults.rs"]
mod faults;

use faults::{FAULTS, registry};
use paceline_lab::run::Runner;
use paceline_lab::suite::{Subject, Suite, run};
use std::collections::BTreeSet;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut suites, mut repeats, mut only) = (Vec::new(), None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--repeats" => repeats = Some(words.next().ok_or("--repeats needs a number")?.parse()?),
            "--only" => only = Some(words.next().ok_or("--only needs a name")?),
            name => suites.push(Suite::find(name)?),
        }
    }
    if suites.is_empty() {
        return Err("name suites: ids of `paceline list suites`, or manifests".into());
    }
    let registry = registry();
    let chosen = FAULTS.iter().filter(|fault| only.as_ref().is_none_or(|name| fault.name.contains(name.as_str())));
    let chosen: Vec<_> = chosen.collect();
    let names = std::iter::once("googcc").chain(chosen.iter().map(|fault| fault.name));
    let subjects: Vec<_> = names.map(|name| Subject::controller(name, &registry)).collect();
    let report = run(&Runner::simulator(&registry), &suites, &subjects, repeats, None, &|_| ())??;
    let mut missed = Vec::new();
    for (n, fault) in chosen.into_iter().enumerate() {
        println!("{}: {}", fault.name, fault.text);
        let mut found = false;
        for suite in &report.suites {
            let fails = |n: usize| suite.failed(&suite.rows[n]).collect::<BTreeSet<String>>();
            let (before, after) = (fails(0), fails(n + 1));
            after.difference(&before).for_each(|bound| println!("  lost    {bound}"));
            before.difference(&after).for_each(|bound| println!("  gained  {bound}"));
            found |= !after.is_subset(&before);
        }
        if !found {
            missed.push(fault.name);
        }
    }
    if missed.is_empty() {
        println!("\nevery fault makes a bound fail that googcc keeps");
    } else {
        println!("\nthese faults make no bound fail that googcc keeps: {}", missed.join(", "));
    }
    Ok(())
}
