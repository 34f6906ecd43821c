//! Cases: variants of one experiment in one file. Which one is wanted, and what it changes.

use super::catalogue::Origin;
use super::file::{CaseTable, Placed, ScenarioFile};
use super::overrides::{self, Setting};
use super::problem::Problem;
use crate::label::Label;

/// The case that `wanted` says. If it says nothing: the one that changes nothing, as that is the scenario as written.
pub(super) fn choose<'a>(
    origin: &Origin,
    file: &'a ScenarioFile,
    wanted: &Label,
) -> Result<Option<&'a CaseTable>, Problem> {
    check(origin, file)?;
    if wanted.is_empty() {
        return Ok(file.case.iter().find(|c| c.set.is_empty()));
    }
    let mut found = file.case.iter().filter(|c| c.label.get().says(wanted));
    let (first, second) = (found.next(), found.next());
    match (first, second) {
        (Some(case), None) => Ok(Some(case)),
        (None, _) => {
            let message = format!("{} has no case `{wanted}`", file.id.get());
            Err(Problem::of(&origin.name, &origin.text, message).help(known(file)))
        }
        (Some(_), Some(_)) => {
            let message = format!("several cases of {} are `{wanted}`", file.id.get());
            Err(Problem::of(&origin.name, &origin.text, message).help(known(file)))
        }
    }
}

/// Every case, for a hint.
pub(super) fn known(file: &ScenarioFile) -> String {
    if file.case.is_empty() {
        return "a case is written [[case]] with a label and what it sets; leave it out where there is one".to_owned();
    }
    let list: Vec<String> = file.case.iter().map(|c| format!("`{}`", c.label.get())).collect();
    format!("cases: {}", list.join(", "))
}

/// The text with what the case sets.
pub(super) fn apply(origin: &Origin, case: &CaseTable) -> Result<String, Problem> {
    let settings: Vec<Setting> = case.set.iter().map(|(key, value)| Setting::new(key, &value.get().0)).collect();
    let places: Vec<_> = case.set.values().map(Placed::span).collect();
    overrides::apply(&origin.name, &origin.text, &settings, |index, message| {
        let message = format!("case {}: {}: {message}", case.label.get(), settings[index].key());
        Problem::at(&origin.name, &origin.text, places[index].clone(), message)
    })
}

/// The change, for complaints about the text after it.
pub(super) fn described(case: &CaseTable) -> String {
    let set: Vec<String> =
        case.set.iter().map(|(key, value)| Setting::new(key, &value.get().0)).map(|s| s.to_string()).collect();
    format!("the case {} ({})", case.label.get(), set.join(", "))
}

fn check(origin: &Origin, file: &ScenarioFile) -> Result<(), Problem> {
    let at = |span, message: String| Problem::at(&origin.name, &origin.text, span, message);
    for (index, case) in file.case.iter().enumerate() {
        let label = &case.label;
        if label.get().is_empty() {
            let problem = at(label.span(), "a case's label says what tells it from the others".to_owned());
            return Err(problem.help("write it like { threshold = \"static\" }"));
        }
        if file.case[..index].iter().any(|other| other.label.get() == label.get()) {
            let problem = at(label.span(), format!("two cases are called `{}`", label.get()));
            return Err(problem.help("results name cases by their label; give each one of its own"));
        }
        if let Some((key, value)) = case.set.iter().find(|(key, v)| v.get().0.is_table() && !key.contains('.')) {
            let problem = at(value.span(), format!("`{key}` is a whole table of the scenario"));
            return Err(problem.help(format!("write each key in quotes, as of --set: \"{key}.….…\" = …")));
        }
    }
    Ok(())
}
