// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the public interface in a JSON file of rustdoc: one item a line, and the derived traits of a type on one line. What an
//! implementation of a trait of the crate itself contains follows from the trait, and is not listed.

use public_api::{Builder, PublicApi};
use std::collections::BTreeSet;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: public-api-listing FILE.json")?;
    let builder = || Builder::from_rustdoc_json(&path).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let lines = |api: PublicApi| api.items().map(ToString::to_string).collect::<Vec<_>>();
    let written: BTreeSet<String> = lines(builder().omit_auto_derived_impls(true).build()?).into_iter().collect();
    let all = lines(builder().build()?);
    let name = all.first().and_then(|line| line.strip_prefix("pub mod ")).ok_or("the first item is no crate")?;
    let own_trait = format!("impl {name}::");
    let (mut listed, mut derived, mut is_implied) = (BTreeSet::new(), Derived::default(), false);
    for line in &all {
        let is_member = ["pub fn ", "pub const ", "pub type "].iter().any(|item| line.starts_with(item));
        is_implied &= is_member;
        if line.starts_with("impl") {
            is_implied = line.starts_with(&own_trait) && line.contains(" for ");
        }
        // An implementation detail of the compiler.
        if is_implied && is_member || line.contains("StructuralPartialEq") {
            continue;
        }
        if !written.contains(line) {
            derived.add(line);
        } else if listed.insert(line) {
            derived.print();
            println!("{line}");
        }
    }
    derived.print();
    Ok(())
}

/// The derived traits of a type, in a row of the listing.
#[derive(Default)]
struct Derived<'a> {
    owner: &'a str,
    traits: Vec<&'a str>,
}

impl<'a> Derived<'a> {
    /// Adds an implementation. Its methods follow from the trait.
    fn add(&mut self, line: &'a str) {
        let Some((path, owner)) = line.strip_prefix("impl").and_then(|rest| rest.split_once(" for ")) else { return };
        if owner != self.owner {
            self.print();
            self.owner = owner;
        }
        self.traits.push(path.rsplit("::").next().unwrap_or(path));
    }

    fn print(&mut self) {
        if !self.traits.is_empty() {
            println!("derive {} for {}", self.traits.join(", "), self.owner);
        }
        self.traits.clear();
    }
}
