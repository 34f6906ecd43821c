//! `paceline list`.

use super::check_controllers;
use crate::external;
use crate::output;
use crate::table::Table;
use crate::worlds;
use clap::builder::PossibleValuesParser;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::catalogue::{self, CONTROLLERS, Details, Entry, YARDSTICKS};
use std::process::ExitCode;

/// Arguments of `list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What to list; everything if absent.
    #[arg(value_parser = PossibleValuesParser::new(catalogue::kinds()))]
    kind: Option<String>,
    /// Name of one of them; shows its parameters or its source.
    name: Option<String>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// Prints the lists.
pub fn list(arguments: &Arguments) -> Result<ExitCode> {
    let kinds = match arguments.kind.as_deref() {
        None => catalogue::kinds().to_vec(),
        // A heading of its own shows that those are no controllers to choose from.
        Some(CONTROLLERS) => vec![CONTROLLERS, YARDSTICKS],
        Some(kind) => vec![kind],
    };
    if let (Some(name), Some(CONTROLLERS | YARDSTICKS)) = (&arguments.name, arguments.kind.as_deref()) {
        list_one(name, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listing = catalogue::list(&kinds, &worlds::names().map(|world| (world, worlds::registry(world))));
    if let (Some(name), [kind]) = (&arguments.name, kinds.as_slice()) {
        let known = &listing[*kind];
        let Some(entry) = known.iter().find(|entry| entry.name == *name) else {
            let names: Vec<&str> = known.iter().map(|entry| entry.name.as_str()).collect();
            let help = paceline_scenario::suggestion(name, &names);
            return Err(miette!(help = help, "no `{name}` among the {kind}"));
        };
        output::print_result(arguments.json, entry, || describe(entry))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print_result(arguments.json, &listing, || {
        let table = |kind: &&str| {
            let mut table = Table::new([*kind, ""], 2);
            listing[kind].iter().for_each(|e| table.row(vec![format!("  {}", e.name), e.summary.clone()]));
            table.render() + "\n"
        };
        kinds.iter().map(table).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Describes an entry that is no controller.
fn describe(entry: &Entry) -> String {
    let heading = output::wrap(&format!("{}: {}", output::bold(&entry.name), entry.summary));
    let heading = heading.trim_start();
    match &entry.details {
        Details::Keys { keys } if !keys.is_empty() => {
            let mut table = Table::new(["key", "default", "range", "description"], 3).with_text_last();
            for key in keys {
                let row = [key.name, key.default, &key.range, key.description];
                table.row(row.map(str::to_owned).to_vec());
            }
            format!("{heading}\n\n{}", table.render())
        }
        Details::Preset { source } | Details::Scenario { source, .. } if !source.is_empty() => {
            format!("{heading}\n{}\n", output::wrap(source))
        }
        _ => format!("{heading}\n"),
    }
}

fn list_one(name: &str, json: bool) -> Result<()> {
    let has = |registry: &Registry| registry.get(name).is_some();
    let registry = worlds::names().into_iter().map(worlds::registry).find(has).unwrap_or_else(Registry::standard);
    let named = [name.to_owned()];
    let registry = external::add(registry, &named, &[], "")?;
    check_controllers(&named, &registry)?;
    let entry = registry.get(name).expect("the name was checked");
    output::print_result(json, &catalogue::controller(entry), || describe_parameters(entry))
}

fn describe_parameters(entry: &paceline::Entry) -> String {
    let mut table = Table::new(["parameter", "default", "unit", "from", "to", "description"], 1).with_text_last();
    for f in entry.fields() {
        let [default, from, to] = [f.default, f.range.0, f.range.1].map(|x| format!("{x}"));
        table.row(vec![f.name.to_owned(), default, f.unit.to_owned(), from, to, f.source.to_owned()]);
    }
    let (name, summary, source) = (entry.name(), entry.summary(), entry.source());
    let heading = output::wrap(&format!("{}: {summary}", output::bold(name)));
    let hint = "Set one with --set flow.ID.config.PARAMETER=VALUE; ID is the flow's id.";
    let (heading, source, hint) = (heading.trim_start(), output::wrap(source), output::wrap(hint));
    format!("{heading}\n{source}\n\n{}\n{hint}\n", table.render())
}
