// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenarios that Paceline ships, and the search for the text of a name.

use super::edit;
use super::error::{ScenarioError, nearest, suggestion};
use super::fresh;
use super::text_file;
use super::text_span::Spanned;
use super::trace::{Direction, Trace};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// A scenario's text, and the location of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its file, for errors.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The folder to which file names in it are relative; none for a scenario of the catalogue.
    folder: Option<PathBuf>,
    /// The files given with the text, by name, in place of those of the folder.
    files: Option<Arc<BTreeMap<String, String>>>,
    /// Whether published values and bounds are read.
    has_expectations: bool,
}

/// The scenarios that Paceline ships.
#[derive(Clone, Copy, Debug, Default)]
pub struct Catalogue;

impl Catalogue {
    /// Returns the ids of all scenarios, in order.
    pub fn ids(self) -> impl Iterator<Item = &'static str> {
        FILES.iter().filter(|(name, _)| is_scenario(name)).filter_map(|(name, _)| name.strip_suffix(".toml"))
    }

    /// Returns the ids of all sweeps, in order.
    pub fn sweeps(self) -> impl Iterator<Item = &'static str> {
        shipped(SWEEP).map(|(id, ..)| id)
    }

    /// Returns the ids of all suites, in order.
    pub fn suites(self) -> impl Iterator<Item = &'static str> {
        shipped(SUITE).map(|(id, ..)| id)
    }

    /// Returns the ids of all tables of formulas, in order.
    pub fn formula_tables(self) -> impl Iterator<Item = &'static str> {
        shipped(FORMULA).map(|(id, ..)| id)
    }

    /// Returns the suite with this id, or in this file.
    pub fn find_suite(self, name: &str) -> Result<Origin, ScenarioError> {
        if name.ends_with(".toml") && !name.ends_with(SUITE) {
            let help = format!("its name must end in {SUITE}; `paceline run {name}` runs a scenario");
            return Err(error(name, format!("{name} is no manifest of a suite"), help));
        }
        if !self.suites().any(|id| id == name) && self.group(name).next().is_some() {
            let help = format!("`paceline reproduce {name}` judges its scenarios; `paceline list suites` shows suites");
            return Err(error(name, format!("`{name}` is a group of scenarios, not a suite"), help));
        }
        match fresh::manifest(name) {
            Some(text) => Ok(Origin::made(format!("{name}{SUITE}"), text)),
            None => self.shipped(name, SUITE, "suite", self.suites()),
        }
    }

    /// Returns the scenario with this id, or in this file; `-` is standard input.
    pub fn find(self, name: &str) -> Result<Origin, ScenarioError> {
        if name == STDIN {
            let text = text_file::read_stdin().map_err(|error| ScenarioError::of(name, "", error))?;
            return Ok(Origin::from_text("standard input", text));
        }
        if let Some(text) = fresh::scenario(name) {
            return Ok(Origin::made(format!("{name}.toml"), text));
        }
        for (ending, kind) in [(SWEEP, "sweep"), (SUITE, "suite")] {
            if name.ends_with(ending) || shipped(ending).any(|(id, ..)| id == name) && !self.is_scenario_id(name) {
                let help = format!("`paceline {kind} {name}` runs it");
                return Err(error(name, format!("{name} is a {kind}, not a scenario"), help));
            }
        }
        if name.ends_with(".toml") || Path::new(name).is_file() {
            let origin = Self::file(name, "scenario")?;
            if !name.ends_with(".toml") && Trace::read(&origin.text, Direction::default()).is_ok() {
                let set = format!("--set 'path.forward.capacity={{ trace = \"{name}\" }}'");
                let help = format!(
                    "`paceline new call.toml` writes a scenario, and `paceline run call.toml {set}` runs it over the trace"
                );
                return Err(error(name, format!("{name} is a capacity trace, not a scenario"), help));
            }
            return Ok(origin);
        }
        let experiments: Vec<String> = self.group(name).map(|id| format!("`{id}`")).collect();
        if !experiments.is_empty() {
            let list = experiments.join(", ");
            let help = format!("name one: {list}; `paceline reproduce {name}` judges all by their published values");
            return Err(error(name, format!("`{name}` is a group of scenarios, not a scenario"), help));
        }
        if self.formula_tables().any(|id| id == name) {
            return Err(error(name, format!("there is no scenario `{name}`"), without_a_run(name)));
        }
        if is_path_preset(name) {
            let help = format!(
                "`paceline choose {name}` runs a call over it, `paceline link --preset {name} -- COMMAND` any program; `paceline new \
                 call.toml --path` writes a scenario"
            );
            return Err(error(name, format!("`{name}` is a preset of a path, not a scenario"), help));
        }
        if Path::new(name).is_dir() && !self.is_scenario_id(name) {
            let help =
                format!("name a file in it, such as {name}/NAME.toml; `paceline report {name}` shows results of --out");
            return Err(error(name, format!("`{name}` is a folder, not a scenario"), help));
        }
        self.shipped(name, ".toml", "scenario", self.ids())
    }

    /// Returns the scenarios of a paper or another group.
    fn group(self, name: &str) -> impl Iterator<Item = &'static str> {
        self.ids().filter(move |id| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
    }

    fn is_scenario_id(self, name: &str) -> bool {
        self.ids().any(|id| id == name)
    }

    /// Returns the sweep with this id, or in this file.
    pub fn find_sweep(self, name: &str) -> Result<Origin, ScenarioError> {
        let is_scenario = |text: &str| {
            let table = text.parse::<toml::Table>().unwrap_or_default();
            !table.contains_key("measure") && (table.contains_key("flow") || table.contains_key("path"))
        };
        let is_shipped_scenario = self.is_scenario_id(name) && !self.sweeps().any(|id| id == name);
        let found = match is_shipped_scenario {
            true => self.find(name)?,
            false => self.shipped(name, SWEEP, "sweep", self.sweeps())?,
        };
        if is_shipped_scenario || is_scenario(&found.text) {
            let help = format!(
                "`paceline run {name}` runs it; a sweep is a file that names scenarios in its measures: `paceline list sweeps`"
            );
            return Err(error(name, format!("{name} is a scenario, not a sweep"), help));
        }
        Ok(found)
    }

    /// Returns the table of a formula with this id, or in this file.
    pub fn find_formula_table(self, name: &str) -> Result<Origin, ScenarioError> {
        self.shipped(name, FORMULA, "table", self.formula_tables())
    }

    /// Reads a file of the user.
    fn file(name: &str, kind: &str) -> Result<Origin, ScenarioError> {
        let path = Path::new(name);
        let help = format!("`paceline list {kind}s` shows the ids of the {kind}s that Paceline ships");
        let complain = |message: String| error(name, message, help.clone());
        let text = text_file::read(path).map_err(complain)?;
        if text.trim().is_empty() {
            return Err(complain(format!("{name} is empty")));
        }
        let folder = path.parent().map(Path::to_path_buf);
        Ok(Origin { name: name.to_owned(), text, folder, files: None, has_expectations: true })
    }

    /// Returns the shipped file of this id; `ids` are the ids of its kind. Any other name that ends in .toml is a file.
    fn shipped(
        self,
        name: &str,
        ending: &str,
        kind: &str,
        ids: impl Iterator<Item = &'static str>,
    ) -> Result<Origin, ScenarioError> {
        let ids: Vec<&str> = ids.collect();
        let file = format!("{name}{ending}");
        if let Some((file, text)) = FILES.iter().find(|(known, _)| ids.contains(&name) && *known == file) {
            let (name, text) = (format!("scenarios/{file}"), (*text).to_owned());
            return Ok(Origin::made(name, text));
        }
        if name.ends_with(".toml") {
            return Self::file(name, kind);
        }
        let same = ids.iter().filter(|id| id.rsplit('/').next() == Some(name));
        let same = same.map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" or ");
        let near = match same.is_empty() {
            true => {
                let more = SUITES.iter().filter(|_| kind == "suite");
                nearest(name, ids.into_iter().chain(more.copied())).map(|near| format!("did you mean `{near}`? "))
            }
            false => Some(format!("did you mean {same}? ")),
        };
        let list = format!("`paceline list {kind}s` shows all; a file's name must end in {ending}");
        Err(error(name, format!("there is no {kind} `{name}`"), format!("{}{list}", near.unwrap_or_default())))
    }
}

/// The name that stands for standard input.
const STDIN: &str = "-";

/// The ending of sweep files.
const SWEEP: &str = ".sweep.toml";

/// The ending of the manifests of suites.
pub const SUITE: &str = ".suite.toml";

/// The name of files of constants.
pub(super) const CONSTANTS: &str = "constants.toml";

/// Names that people use for presets of paths.
pub(super) const PATH_ALIASES: [(&str, &str); 2] = [("dsl", "adsl"), ("starlink", "satellite-leo")];

/// Names of several suites.
const SUITES: [&str; 2] = ["short", "all"];

/// The name of files of the conclusions of a paper.
const CONCLUSIONS: &str = "conclusions.toml";

/// The ending of files of path presets.
pub(super) const PATH_PRESET: &str = ".path.toml";

/// The ending of files of the verdicts that a suite expects.
pub const EXPECTED: &str = ".expected.toml";

/// Begins the name of a file of the catalogue, for scenarios anywhere.
const SHIPPED: &str = "shipped:";

/// The keys whose values are names of files or folders.
const FILE_KEYS: [&str; 3] = ["constants", "trace", "frames"];

/// The ending of files of source presets.
pub(super) const SOURCE_PRESET: &str = ".source.toml";

/// The ending of files whose values a formula gives.
const FORMULA: &str = ".formula.toml";

/// Returns the files with this ending: their names without it, with it, and their texts.
pub(super) fn shipped(ending: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.iter().filter_map(move |(file, text)| Some((file.strip_suffix(ending)?, *file, *text)))
}

/// Returns the last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns whether it is a preset of a path, with or without its direction, or another name of one.
fn is_path_preset(name: &str) -> bool {
    let base = name.strip_suffix("-up").or(name.strip_suffix("-down")).unwrap_or(name);
    let is_alias = PATH_ALIASES.iter().any(|(alias, _)| *alias == name);
    is_alias || shipped(PATH_PRESET).any(|(id, ..)| id.rsplit('/').next() == Some(base))
}

/// Returns an error about a name.
fn error(name: &str, message: String, help: String) -> ScenarioError {
    ScenarioError::of(name, "", message).help(help)
}

/// Returns whether a file in a folder of scenarios is a scenario: any TOML file except `constants.toml`, `conclusions.toml`,
/// sweeps, presets, and tables of formulas.
pub fn is_scenario(file: &str) -> bool {
    let others = [SWEEP, SUITE, EXPECTED, PATH_PRESET, SOURCE_PRESET, FORMULA];
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_other = others.iter().any(|ending| file.ends_with(ending)) || [CONSTANTS, CONCLUSIONS].contains(&name);
    file.ends_with(".toml") && !is_other
}

/// Returns the hint for a table of a formula in place of a scenario.
fn without_a_run(name: &str) -> String {
    format!("a formula gives this table, without a run: `paceline reproduce {name}`")
}

/// Returns whether a file is the table of a formula.
pub fn is_formula_table(file: &str) -> bool {
    file.ends_with(FORMULA)
}

impl Origin {
    /// Returns whether it is in the catalogue.
    pub fn is_shipped(&self) -> bool {
        self.folder.is_none()
    }

    /// Returns what commands take as its name: the id in the catalogue, or the path of the file.
    pub fn argument(&self) -> &str {
        match self.is_shipped() {
            true => self.name.trim_start_matches("scenarios/").trim_end_matches(".toml"),
            false => &self.name,
        }
    }

    /// Returns a text that Paceline made, which is found like one of the catalogue.
    fn made(name: String, text: String) -> Self {
        Self { name, text, folder: None, files: None, has_expectations: true }
    }

    /// Returns a scenario from text, whose file names are relative to the working directory.
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { folder: Some(PathBuf::new()), ..Self::made(name.into(), text.into()) }
    }

    /// Returns the same origin with these files, by the last part of their names, in place of files on the disk.
    pub fn with_files(self, files: BTreeMap<String, String>) -> Self {
        Self { files: Some(Arc::new(files)), ..self }
    }

    /// Returns the names of files in the text that are not in the catalogue.
    pub fn file_names(&self) -> Vec<String> {
        let names = RefCell::new(Vec::new());
        let note = |name: &str| {
            let is_own = self.shipped(name).is_none() && !name.is_empty();
            names.borrow_mut().extend(is_own.then(|| name.to_owned()));
            None
        };
        // A text with an error names no file.
        let _ = edit::with_strings(&self.text, &FILE_KEYS, note);
        names.into_inner()
    }

    /// Returns the scenario of this name: in the folder of this file, or in the catalogue.
    pub fn scenario(&self, name: &str) -> Result<Self, ScenarioError> {
        let file = if name.ends_with(".toml") { name.to_owned() } else { format!("{name}.toml") };
        match &self.folder {
            Some(folder) if folder.join(&file).is_file() => Catalogue.find(&folder.join(&file).display().to_string()),
            _ => Catalogue.find(name),
        }
    }

    /// Returns the path of a file beside this one, or `None` if this one is in the catalogue.
    pub fn beside(&self, file: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(file))
    }

    /// Returns the file of the conclusions of the paper, in the folder of this scenario; `None` if there is none.
    pub fn conclusions(&self) -> Result<Option<Self>, ScenarioError> {
        let name = self.display_path(CONCLUSIONS);
        let text = match &self.folder {
            None => self.shipped(CONCLUSIONS).map(str::to_owned),
            Some(folder) => {
                let path = folder.join(CONCLUSIONS);
                let text = path.is_file().then(|| text_file::read(&path)).transpose();
                text.map_err(|message| ScenarioError::of(&name, "", message))?
            }
        };
        Ok(text.map(|text| Self { name, text, ..self.clone() }))
    }

    /// Returns the scenario without its published values and bounds, for programs that load it many times.
    pub fn without_expectations(&self) -> Self {
        Self { has_expectations: false, ..self.clone() }
    }

    pub(super) fn has_expectations(&self) -> bool {
        self.has_expectations
    }

    /// Returns an error about the text, with a hint.
    pub fn error(&self, message: impl Into<String>, help: impl Into<String>) -> ScenarioError {
        ScenarioError::of(&self.name, &self.text, message).help(help)
    }

    /// Returns an error about a value of the text, with a hint.
    pub fn error_at<T>(
        &self,
        value: &Spanned<T>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::at(&self.name, &self.text, value.span(), message).help(help)
    }

    /// Returns an error about a name of the text that is not in `known`.
    pub fn unknown(&self, name: &Spanned<String>, what: &str, known: &[&str]) -> ScenarioError {
        self.error_at(name, format!("no {what} `{}`", name.get()), suggestion(name.get(), known))
    }

    /// Returns the same origin with another text.
    pub fn with_text(&self, text: String) -> Self {
        Self { text, ..self.clone() }
    }

    /// Returns the text with the full names of the shipped files that it refers to, so that it means the same in any folder.
    pub fn portable_text(&self) -> String {
        let full_name = |name: &str| {
            let shipped = self.is_shipped() && !name.starts_with(SHIPPED) && !name.is_empty();
            let path = self.shipped_name(name);
            let within =
                |known: &str| known.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            (shipped && FILES.iter().any(|(known, _)| within(known))).then(|| format!("{SHIPPED}{path}"))
        };
        edit::with_strings(&self.text, &FILE_KEYS, full_name).unwrap_or_else(|_| self.text.clone())
    }

    /// Returns an error if this is the table of a formula.
    pub(super) fn must_be_run(&self) -> Result<(), ScenarioError> {
        match is_formula_table(&self.name) {
            false => Ok(()),
            true => Err(error(&self.name, format!("{} is no scenario", self.name), without_a_run(&self.name))),
        }
    }

    /// Returns the path of a referenced file, for error messages.
    pub fn display_path(&self, file: &str) -> String {
        match self.shipped(file) {
            Some(_) => format!(
                "scenarios/{}",
                file.strip_prefix(SHIPPED).map_or_else(|| self.shipped_name(file), str::to_owned)
            ),
            None => self.locate(file).display().to_string(),
        }
    }

    /// Reads a file that the scenario names: in the folder of the scenario, in the catalogue, or from the working
    /// directory.
    pub fn read(&self, file: &str) -> Result<String, String> {
        if let Some(text) = self.shipped(file) {
            return Ok(text.to_owned());
        }
        if let Some(files) = &self.files {
            return files
                .get(file_name(file))
                .cloned()
                .ok_or_else(|| format!("the file {} is missing", file_name(file)));
        }
        let path = self.locate(file);
        text_file::read(&path)
    }

    /// Reads the files of a folder that the scenario names, as (name, text), sorted by name.
    pub fn read_folder(&self, folder: &str) -> Result<Vec<(String, String)>, String> {
        let shipped = folder.strip_prefix(SHIPPED).map(str::to_owned);
        if let Some(folder) = shipped.or_else(|| self.folder.is_none().then(|| self.shipped_name(folder))) {
            let prefix = format!("{folder}/");
            let files: Vec<_> = FILES
                .iter()
                .filter_map(|(name, text)| Some((name.strip_prefix(&prefix)?.to_owned(), (*text).to_owned())))
                .collect();
            if !files.is_empty() {
                return Ok(files);
            }
        }
        if self.files.is_some() {
            return Err(format!("the folder {folder} cannot be read here"));
        }
        let path = self.locate(folder);
        let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let (mut files, mut left) = (Vec::new(), text_file::MAX_BYTES);
        for entry in fs::read_dir(&path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".txt") {
                let text = text_file::read_at_most(&entry.path(), left)?;
                left -= text.len() as u64;
                files.push((name, text));
            }
        }
        files.sort();
        Ok(files)
    }

    /// Describes where files are looked up, as a hint.
    pub(super) fn lookup(&self) -> &'static str {
        match self.files {
            Some(_) => "open this file, too",
            None => "files are looked up in the folder of the scenario file, then from the working directory",
        }
    }

    fn shipped(&self, file: &str) -> Option<&'static str> {
        let name = match file.strip_prefix(SHIPPED) {
            Some(name) => name.to_owned(),
            None if self.folder.is_some() => return None,
            None => self.shipped_name(file),
        };
        FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Returns the path of `file` in the catalogue, relative to the scenario's own folder.
    fn shipped_name(&self, file: &str) -> String {
        let own = self.name.strip_prefix("scenarios/").unwrap_or(&self.name);
        match own.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{file}"),
            None => file.to_owned(),
        }
    }

    /// Returns the path of a file: in the folder of the scenario if it exists there, else from the working directory, as in
    /// `--set`.
    fn locate(&self, file: &str) -> PathBuf {
        match &self.folder {
            Some(folder) if folder.join(file).exists() => folder.join(file),
            _ => PathBuf::from(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, load};
    use paceline::Registry;

    /// The plan of a portable text is the plan of the shipped scenario, wherever the text is.
    #[test]
    fn portable_texts_mean_the_same_in_any_folder() {
        let (registry, mut renamed) = (Registry::standard(), 0);
        for id in Catalogue.ids() {
            let shipped = Catalogue.find(id).unwrap();
            let portable = Origin::from_text("call.toml", shipped.portable_text());
            renamed += usize::from(portable.text != shipped.text);
            // Metrics are not checked; a default case may be missing.
            let plan = |origin: &Origin| load(origin, &Changes::default(), &registry).map(|s| format!("{:?}", s.plan));
            assert_eq!(plan(&portable).unwrap(), plan(&shipped).unwrap(), "{id}");
        }
        assert!(renamed > 10, "{renamed} scenarios refer to files");
    }
}
