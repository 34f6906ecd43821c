// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenario text to [`Scenario`]: the file is parsed once, and layers are merged as values. Of two layers that set the same
//! key the later one holds: constants, presets of the path and of sources, the file, its case, `--set`, `--controller`.

use super::catalogue::Origin;
use super::error::ScenarioError;
use super::evaluation::Scenario;
use super::file::ScenarioFile;
use super::overrides::{self, Override, set};
use super::reader::{parse, read};
use super::resolve::{Background, resolve};
use super::text_span::{HasTextSpan, Sources, TextSpan};
use super::tree::{Node, Value};
use super::{Registries, case, constants, edit, preset};
use paceline::Registry;
use paceline_netsim::records::Label;

/// The changes of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The case whose label matches; if empty, the scenario as it is written.
    pub case: Label,
    /// Values to set, in order.
    pub settings: Vec<Override>,
    /// The controller of every media flow, with its own defaults.
    pub controller: Option<String>,
    /// Other values of assumed constants: id, and value as a scenario would write it.
    pub constants: Vec<(String, String)>,
}

/// Loads a scenario: parses the text, merges the layers, fills in every default, and checks the result.
///
/// # Errors
/// The first error of the scenario or of a change, with its location and a hint.
pub fn load<'a>(
    origin: &Origin,
    changes: &Changes,
    registries: impl Into<Registries<'a>>,
) -> Result<Scenario, ScenarioError> {
    let registries = registries.into();
    let Layered { root, sources, background, made } = merge(origin, changes, registries.controllers)?;
    let file: ScenarioFile = read(&sources, &root)?;
    resolve(file, &sources, origin, background, registries)
        .map_err(|error| error.with_layer(|| (!made.is_empty()).then(|| format!("changed by {}", made.join(" ")))))
}

/// Returns an error about a key of a scenario, for programs that cannot use every scenario: about the first of `keys` that is written, in the
/// table of this flow or, without one, at the top. If none is written, it is about the id of the flow, or about the file.
pub fn error_at_key(
    origin: &Origin,
    changes: &Changes,
    controllers: &Registry,
    (flow, keys): (Option<&str>, &[&str]),
    message: impl Into<String>,
) -> ScenarioError {
    let Layered { root, sources, .. } = match merge(origin, changes, controllers) {
        Ok(layered) => layered,
        Err(error) => return error,
    };
    let of_flow = |id| root.tables_of("flow").iter().find(|table| table.text_of("id") == Some(id));
    let table = flow.map_or(Some(&root), of_flow);
    let find = |key: &str| key.split('.').try_fold(table?, |node, part| node.get(part));
    let node = keys.iter().copied().chain(flow.map(|_| "id")).find_map(find);
    sources.error(&node.map_or(TextSpan::default(), HasTextSpan::text_span), message)
}

/// A scenario whose layers are merged.
struct Layered<'a> {
    root: Node,
    sources: Sources<'a>,
    background: Background,
    /// The case and the overrides.
    made: Vec<String>,
}

/// Parses the text and merges the layers.
fn merge<'a>(origin: &'a Origin, changes: &'a Changes, registry: &Registry) -> Result<Layered<'a>, ScenarioError> {
    origin.must_be_run()?;
    let mut sources = Sources::of_file(&origin.name, &origin.text);
    let mut root = Node::document(&sources, 0)?;
    if !origin.has_expectations() {
        let table = root.make_table(TextSpan::default());
        table.retain(|key, _| !["expect", "assert"].contains(&key.as_str()));
    }
    let mut made = Vec::new();
    let mut background = Background::default();
    let cases = case::cases(&root, &sources)?;
    let id = root.text_of("id").unwrap_or(&origin.name).to_owned();
    if let Some(n) = case::choose(&cases, &changes.case, &id, &sources)? {
        background.case = cases[n].label.get().clone();
        made.extend(case::apply(&mut root, n, &cases[n], &mut sources)?);
    }
    let controller = changes.controller.as_deref();
    let (first_override, mut unset) = (sources.next(), Vec::new());
    for change in &changes.settings {
        background.shortened |= change.key() == "duration";
        made.push(format!("--set {change}"));
        let (text_span, value) = change.add_to(&mut sources);
        for path in constants::of_each_flow(change, text_span, &root, controller, registry, &sources)? {
            if change.is_unset() {
                overrides::unset(&mut root, &path);
                unset.push(path);
            } else {
                set(&mut root, &path, value.clone(), &sources)?;
            }
        }
    }
    background.preset_note = preset::apply_to_path(&mut root, &mut sources)?;
    preset::apply_to_sources(&mut root, &mut sources)?;
    (background.constants, background.constants_note) = constants::apply(
        &mut root,
        origin,
        (&cases, &background.case),
        controller,
        (&changes.constants, &unset),
        registry,
        &mut sources,
    )?;
    if let Some(controller) = controller {
        let source = sources.add("--controller", controller, format!("set by --controller {controller}"));
        let text_span = TextSpan::new(source, 0..controller.len());
        control_media_flows(&mut root, controller, text_span, first_override);
    }
    Ok(Layered { root, sources, background, made })
}

/// Loads every case of a scenario, or the scenario as it is written if it has none.
///
/// # Errors
/// Those of [`load`].
pub fn load_cases<'a>(
    origin: &Origin,
    changes: &Changes,
    registries: impl Into<Registries<'a>>,
) -> Result<Vec<Scenario>, ScenarioError> {
    let registries = registries.into();
    let scenario = load(origin, changes, registries)?;
    if scenario.cases.is_empty() {
        return Ok(vec![scenario]);
    }
    let of = |case: &Label| load(origin, &Changes { case: case.clone(), ..changes.clone() }, registries);
    scenario.cases.iter().map(of).collect()
}

/// Returns the scenario's text with these overrides written into it, comments kept.
///
/// # Errors
/// A key leads nowhere, or the resulting file has an error of its own. Values are not checked against each other.
pub fn edited(origin: &Origin, settings: &[Override], registry: &Registry) -> Result<String, ScenarioError> {
    let mut text = origin.text.clone();
    for change in settings {
        // One after the other: which flows read a key of `media.` may depend on earlier overrides.
        let mut sources = Sources::of_file(&origin.name, &text);
        let root = Node::document(&sources, 0)?;
        let (text_span, _) = change.add_to(&mut sources);
        let paths = constants::of_each_flow(change, text_span, &root, None, registry, &sources)?;
        let each: Vec<Override> = paths.iter().map(|path| change.with_path(path)).collect();
        text = edit::edit_text(&origin.name, &text, &each)?;
    }
    parse::<ScenarioFile>(&origin.name, &text)?;
    Ok(text)
}

/// Puts every media flow that is no cross traffic under `controller`. A flow that was under another keeps only the numbers of `config` that an
/// override or a constant set: those of sources from `first_override` on.
fn control_media_flows(root: &mut Node, controller: &str, text_span: TextSpan, first_override: u32) {
    for flow in root.get_mut("flow").map_or(&mut [][..], Node::elements_mut) {
        let is_cross_traffic = flow.get("cross_traffic").is_some_and(|node| matches!(node.value, Value::Boolean(true)));
        if is_cross_traffic || flow.text_of("controller").is_none_or(|own| own == controller) {
            continue;
        }
        let table = flow.make_table(text_span);
        table.insert(
            "controller".to_owned(),
            (text_span, Node { value: Value::Text(controller.to_owned()), text_span }),
        );
        if let Some((_, Node { value: Value::Table(config), .. })) = table.get_mut("config") {
            config.retain(|_, (_, value)| value.text_span().source() >= first_override);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_programs_name_the_place_of_a_key_in_its_layer() {
        let text = "id = \"x\"\ntitle = \"\"\nduration = \"9 s\"\n[path]\n[[flow]]\nid = \"a\"\ncontroller = \"fixed\"\nencoder = { fps = 12 }\n";
        let (origin, registry) = (Origin::from_text("x.toml", text), Registry::standard());
        let changes = Changes { settings: vec!["flow.a.stop=5 s".parse().unwrap()], ..Changes::default() };
        for (place, source, underlined) in [
            ((Some("a"), &["encoder.fps"][..]), "x.toml", "12"),
            ((Some("a"), &["start", "stop"]), "--set", "5 s"),
            ((Some("a"), &["start"]), "x.toml", "\"a\""),
            ((None, &["duration"]), "x.toml", "\"9 s\""),
        ] {
            let error = error_at_key(&origin, &changes, &registry, place, "wrong").help("hint");
            assert_eq!((error.source_name(), error.offending()), (source, Some(underlined)), "{place:?}");
            assert_eq!(error.hint().map(|hint| hint.starts_with("hint")), Some(true));
        }
        assert_eq!(error_at_key(&origin, &changes, &registry, (None, &["repeats"]), "wrong").line(), None);
    }
}
