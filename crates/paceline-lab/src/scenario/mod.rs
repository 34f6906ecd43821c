//! Scenarios: text to plan.
//!
//! [`file`] is what may be written, `case` is a variant of it, `overrides` is `--set`, `constants` is what a paper leaves
//! open, `resolve` fills in every default and checks what only
//! makes sense together; each complaint is a [`Problem`] with its place and a hint.

mod case;
mod catalogue;
mod constants;
mod file;
mod overrides;
mod problem;
mod resolve;
mod values;

pub use crate::label::Label;
pub use catalogue::{Catalogue, Origin, is_formula_table, is_scenario};
pub(crate) use file::{Anything, Placed, parse};
pub use file::{ScenarioFile, schema};
pub use overrides::Setting;
pub(crate) use overrides::apply;
pub use problem::{Problem, suggestion};

use crate::plan::Plan;
use paceline::Registry;
use resolve::Background;

/// How a scenario is to be changed before it is resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Which case, by what its label says; the scenario as written if this says nothing.
    pub case: Label,
    /// Values to set, in order.
    pub settings: Vec<Setting>,
    /// Controller of every media flow, with its own defaults.
    pub controller: Option<String>,
    /// Other values of assumed constants: id, and value as a scenario would write it.
    pub constants: Vec<(String, String)>,
}

/// Text to plan: parses, applies the changes, resolves. Of two that say the same key the later holds: assumed constants,
/// the scenario, its case, `--set`, `--controller`.
pub fn load(origin: &Origin, changes: &Changes, registry: &Registry) -> Result<Plan, Problem> {
    origin.must_be_run()?;
    // Complaints about the file itself come before those about changes to it.
    let written = parse(&origin.name, &origin.text)?;
    let mut text = origin.text.clone();
    let mut made = Vec::new();
    let shortened = changes.settings.iter().any(|s| s.key() == "duration");
    let mut background = Background { shortened, ..Background::default() };
    if let Some(case) = case::choose(origin, &written, &changes.case)? {
        background.case = case.label.get().clone();
        if !case.set.is_empty() {
            text = case::apply(origin, case)?;
            made.push(case::described(case));
        }
    }
    let (text, set) = set_all(origin, text, changes, registry, &mut made)?;
    let attempt = |text: &str, settings: &[Setting], background, made: &[String]| {
        let mut file: ScenarioFile = parse(&origin.name, text).map_err(|p| p.after_changes(made))?;
        if let Some(controller) = &changes.controller {
            file.control_all_by(controller, settings);
        }
        resolve::resolve(file, text, origin, background, registry).map_err(|p| p.after_changes(made))
    };
    let file: ScenarioFile = parse(&origin.name, &text).map_err(|p| p.after_changes(&made))?;
    let controller = changes.controller.as_deref();
    let assumed = constants::constants(origin, &text, &file, controller, &changes.constants, registry)?;
    if assumed.settings.is_empty() {
        background.constants = assumed.list;
        return attempt(&text, &set, background, &made);
    }
    let with = apply(&origin.name, &text, &assumed.settings, |index, message| {
        Problem::of(&origin.name, &text, format!("constant {}: {message}", assumed.settings[index]))
    })?;
    let settings = [set.clone(), assumed.settings.clone()].concat();
    let mut all = made.clone();
    all.extend(assumed.settings.iter().map(|s| format!("the constant {s}")));
    let (constants, constants_note) = (assumed.list, assumed.note);
    let assuming = Background { constants, constants_note, ..background.clone() };
    attempt(&with, &settings, assuming, &all).map_err(|problem| {
        // What is wrong without constants too is shown where it was written.
        attempt(&text, &set, background, &made).err().unwrap_or(problem)
    })
}

/// The scenario's text with these changes written into it, comments kept.
///
/// # Errors
/// A key leads nowhere, or says what no scenario may say; what only makes sense together is not looked at.
pub fn edited(origin: &Origin, settings: &[Setting], registry: &Registry) -> Result<String, Problem> {
    let changes = Changes { settings: settings.to_vec(), ..Changes::default() };
    let mut made = Vec::new();
    let (text, _) = set_all(origin, origin.text.clone(), &changes, registry, &mut made)?;
    parse::<ScenarioFile>(&origin.name, &text).map_err(|p| p.after_changes(&made))?;
    Ok(text)
}

/// The text with every setting made, each of the settings as it came to stand there, and in `made` what was asked.
fn set_all(
    origin: &Origin,
    mut text: String,
    changes: &Changes,
    registry: &Registry,
    made: &mut Vec<String>,
) -> Result<(String, Vec<Setting>), Problem> {
    let mut set = Vec::new();
    for setting in &changes.settings {
        // One after the other: which flows read a key of `media.` may hang on what was set before it.
        let file = || parse(&origin.name, &text).map_err(|p| p.after_changes(made));
        let each = constants::of_each_flow(origin, &text, setting, file, changes.controller.as_deref(), registry)?;
        text = apply(&origin.name, &text, &each, |index, message| {
            Problem::of(&origin.name, &text, format!("--set {}: {message}", each[index]))
        })?;
        made.push(format!("--set {setting}"));
        set.extend(each);
    }
    Ok((text, set))
}

/// Every case of a scenario, or the scenario as written if it has none.
pub fn load_cases(origin: &Origin, changes: &Changes, registry: &Registry) -> Result<Vec<Plan>, Problem> {
    let plan = load(origin, changes, registry)?;
    if plan.cases.is_empty() {
        return Ok(vec![plan]);
    }
    let of = |case: &Label| load(origin, &Changes { case: case.clone(), ..changes.clone() }, registry);
    plan.cases.iter().map(of).collect()
}
