//! The scenarios that come with Paceline, and how a name becomes a text.

use super::problem::{Problem, nearest};
use std::fs;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Where a scenario's text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its file, for complaints.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The folder that its own file names start from; none for a scenario of the catalogue.
    folder: Option<PathBuf>,
}

/// The scenarios that come with Paceline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Catalogue;

impl Catalogue {
    /// Ids of all scenarios, in order.
    pub fn ids(self) -> impl Iterator<Item = &'static str> {
        FILES.iter().filter(|(name, _)| is_scenario(name)).filter_map(|(name, _)| name.strip_suffix(".toml"))
    }

    /// Ids of all sweeps, in order.
    pub fn sweeps(self) -> impl Iterator<Item = &'static str> {
        FILES.iter().filter_map(|(name, _)| name.strip_suffix(SWEEP))
    }

    /// Ids of all tables that a formula gives, in order.
    pub fn formula_tables(self) -> impl Iterator<Item = &'static str> {
        FILES.iter().filter_map(|(name, _)| name.strip_suffix(FORMULA))
    }

    /// The sweep of this id, or in this file.
    pub fn find_sweep(self, name: &str) -> Result<Origin, Problem> {
        self.find_kind(name, SWEEP, "sweep", self.sweeps())
    }

    /// The table of this id, or in this file, that a formula gives.
    pub fn find_formula_table(self, name: &str) -> Result<Origin, Problem> {
        self.find_kind(name, FORMULA, "table", self.formula_tables())
    }

    fn find_kind(
        self,
        name: &str,
        ending: &str,
        kind: &str,
        ids: impl Iterator<Item = &'static str>,
    ) -> Result<Origin, Problem> {
        let file = format!("{name}{ending}");
        match FILES.iter().find(|(known, _)| *known == file) {
            Some((known, text)) => {
                Ok(Origin { name: format!("scenarios/{known}"), text: (*text).to_owned(), folder: None })
            }
            None if name.ends_with(".toml") => self.find(name),
            None => {
                let near = nearest(name, ids).map(|near| format!("did you mean `{near}`? "));
                let list = format!("`paceline list {kind}s` shows all; a file's name must end in .toml");
                let problem = Problem::of(name, "", format!("there is no {kind} `{name}`"));
                Err(problem.help(format!("{}{list}", near.unwrap_or_default())))
            }
        }
    }

    /// The scenario of this id, or in this file.
    pub fn find(self, name: &str) -> Result<Origin, Problem> {
        let path = Path::new(name);
        if name.ends_with(".toml") || path.is_file() {
            let text = fs::read_to_string(path).map_err(|error| {
                let problem = Problem::of(name, "", format!("cannot read {name}: {error}"));
                problem.help("the scenarios that come with Paceline have ids: `paceline list scenarios` shows them")
            })?;
            let folder = path.parent().map(Path::to_path_buf);
            return Ok(Origin { name: name.to_owned(), text, folder });
        }
        let file = format!("{name}.toml");
        match FILES.iter().find(|(known, _)| *known == file && is_scenario(known)) {
            Some((known, text)) => {
                Ok(Origin { name: format!("scenarios/{known}"), text: (*text).to_owned(), folder: None })
            }
            None => {
                let problem = Problem::of(name, "", format!("there is no scenario `{name}`"));
                if self.formula_tables().any(|id| id == name) {
                    return Err(problem.help(without_a_run(name)));
                }
                let last = self.ids().find(|id| id.rsplit('/').next() == Some(name));
                let near = last.or_else(|| nearest(name, self.ids())).map(|near| format!("did you mean `{near}`? "));
                let list = "`paceline list scenarios` shows all; a file's name must end in .toml";
                Err(problem.help(format!("{}{list}", near.unwrap_or_default())))
            }
        }
    }
}

/// How names of sweep files end.
const SWEEP: &str = ".sweep.toml";

/// How names of files end whose values a formula gives.
const FORMULA: &str = ".formula.toml";

/// Whether a file of a folder of scenarios is one: any TOML file but `constants.toml`, which holds what they assume, sweeps,
/// and tables that a formula gives.
pub fn is_scenario(file: &str) -> bool {
    let other = file.ends_with(SWEEP) || is_formula_table(file) || file.rsplit('/').next() == Some("constants.toml");
    file.ends_with(".toml") && !other
}

/// What to do with a table that a formula gives, where a scenario is wanted.
fn without_a_run(name: &str) -> String {
    format!("a formula gives this table, without a run: `paceline reproduce {name}`")
}

/// Whether a file is a table that a formula gives.
pub fn is_formula_table(file: &str) -> bool {
    file.ends_with(FORMULA)
}

impl Origin {
    /// Whether it is of the catalogue.
    pub fn is_shipped(&self) -> bool {
        self.folder.is_none()
    }

    /// A scenario from text, whose files are looked up from the working directory.
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), folder: Some(PathBuf::new()) }
    }

    /// The same with another text: what it names is looked up in the same place.
    pub(crate) fn with_text(&self, text: String) -> Self {
        Self { text, ..self.clone() }
    }

    /// A complaint if this is a table that a formula gives, and no scenario.
    pub(super) fn must_be_run(&self) -> Result<(), Problem> {
        match is_formula_table(&self.name) {
            true => {
                Err(Problem::of(&self.name, "", format!("{} is no scenario", self.name))
                    .help(without_a_run(&self.name)))
            }
            false => Ok(()),
        }
    }

    /// What a file that the scenario names is called in complaints.
    pub(crate) fn beside(&self, file: &str) -> String {
        match self.shipped(file) {
            Some(_) => format!("scenarios/{}", self.shipped_name(file)),
            None => self.locate(file).display().to_string(),
        }
    }

    /// A file that the scenario names: beside it, in the catalogue, or from the working directory.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        if let Some(text) = self.shipped(file) {
            return Ok(text.to_owned());
        }
        let path = self.locate(file);
        fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// The files of a folder that the scenario names, as (name, text), sorted by name.
    pub(crate) fn read_folder(&self, folder: &str) -> Result<Vec<(String, String)>, String> {
        if self.folder.is_none() {
            let prefix = format!("{}/", self.shipped_name(folder));
            let files: Vec<_> = FILES
                .iter()
                .filter_map(|(name, text)| Some((name.strip_prefix(&prefix)?.to_owned(), (*text).to_owned())))
                .collect();
            if !files.is_empty() {
                return Ok(files);
            }
        }
        let path = self.locate(folder);
        let complain = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&path).map_err(complain)? {
            let entry = entry.map_err(complain)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".txt") {
                files.push((name, fs::read_to_string(entry.path()).map_err(complain)?));
            }
        }
        files.sort();
        Ok(files)
    }

    fn shipped(&self, file: &str) -> Option<&'static str> {
        if self.folder.is_some() {
            return None;
        }
        let name = self.shipped_name(file);
        FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// `file`, as seen from the scenario's own folder in the catalogue.
    fn shipped_name(&self, file: &str) -> String {
        let own = self.name.strip_prefix("scenarios/").unwrap_or(&self.name);
        match own.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{file}"),
            None => file.to_owned(),
        }
    }

    /// Beside the scenario if it is there, else from the working directory, where `--set` names files from.
    fn locate(&self, file: &str) -> PathBuf {
        match &self.folder {
            Some(folder) if folder.join(file).exists() => folder.join(file),
            _ => PathBuf::from(file),
        }
    }
}
