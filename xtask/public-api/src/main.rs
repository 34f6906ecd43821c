//! Lists the public interface in a JSON file of rustdoc: one item a line. Of derived traits it lists the implementation, not the
//! methods. An implementation that belongs to a type and to a trait is listed once.

use public_api::{Builder, PublicApi};
use std::collections::BTreeSet;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: public-api-listing FILE.json")?;
    let builder = || Builder::from_rustdoc_json(&path).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let lines = |api: PublicApi| api.items().map(ToString::to_string).collect::<Vec<_>>();
    let written: BTreeSet<String> = lines(builder().omit_auto_derived_impls(true).build()?).into_iter().collect();
    let all = lines(builder().build()?);
    let is_listed = |line: &&String| {
        // An implementation detail of the compiler.
        !line.contains("StructuralPartialEq") && (line.starts_with("impl") || written.contains(*line))
    };
    let mut listed = BTreeSet::new();
    all.iter().filter(is_listed).filter(|line| listed.insert(*line)).for_each(|line| println!("{line}"));
    Ok(())
}
