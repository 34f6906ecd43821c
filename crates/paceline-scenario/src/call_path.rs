// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths that a user names on the command line or in Python: a preset, a recorded trace, or a scenario. Over the first two there is one
//! video call; a scenario has its own media.

use super::catalogue::{Catalogue, Origin};
use super::error::{ScenarioError, nearest};
use super::preset::{path_names, path_preset};
use super::template::template_sources;
use super::text_file;
use super::trace::{Direction, Trace};
use paceline_netsim::flow::MediaKind;
use std::path::Path;

/// The video of a call, and its length, where the user names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Source of the video; `720p` stands for `720p30`, which is also that of `None`.
    pub video: Option<String>,
    /// What the call is for.
    pub media_use: Option<String>,
    /// Length of a run. `None`: two minutes, or the length of the trace if it is shorter.
    pub duration: Option<String>,
}

/// A path with the scenario of a call over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// Its name.
    pub name: String,
    /// The scenario.
    pub origin: Origin,
    /// What of the path is not measured, in a sentence; `None` for a scenario of the user.
    pub assumed: Option<String>,
}

/// The longest run over a trace, and the shortest: less has hardly a window of the score.
const SECONDS: (f64, f64) = (120.0, 20.0);
/// The drain time of the queue before a traced link, at its mean rate, and the least queue: twenty packets.
const QUEUE: (f64, f64) = (0.6, 30_000.0);
const FORMATS: &str = "`paceline list traces` shows the formats of recorded traces";

impl CallPath {
    /// Returns the calls over these traces, then those over the other paths, each with a name of its own.
    ///
    /// # Errors
    /// Those of [`find`](Self::find); there is no path, or two have one name.
    pub fn find_all(traces: &[String], others: &[String], call: &Call) -> Result<Vec<Self>, ScenarioError> {
        let mut paths: Vec<Self> = Vec::new();
        let others = others.iter().map(|path| Self::find(path, call));
        for path in traces.iter().map(|trace| Self::of_trace(trace, call)).chain(others) {
            let path = path?;
            if paths.iter().any(|other| other.name == path.name) {
                let help = "name each path once; a trace has another name as `NAME=FILE`";
                return Err(error(&path.name, format!("two paths have the name `{}`", path.name), help));
            }
            paths.push(path);
        }
        match paths.is_empty() {
            false => Ok(paths),
            true => {
                let help = "name a preset such as `dsl`, a scenario, or a trace: `--trace FILE`";
                Err(error("", "there is no path to choose for".to_owned(), help))
            }
        }
    }

    /// Returns the call over a preset (`adsl` is `adsl-up`), in a scenario, or over the trace of a file.
    ///
    /// # Errors
    /// There is no such path, its trace cannot be read, or the call does not apply to it.
    pub fn find(text: &str, call: &Call) -> Result<Self, ScenarioError> {
        if let Some(preset) = path_preset(text) {
            let (path, seconds) = (format!("[path]\npreset = \"{}\"", preset.name), SECONDS.0);
            let assumed = format!("{text} is a preset: {}.", preset.source);
            return Self::over(text, &preset.title, (&path, seconds), call, assumed);
        }
        let is_scenario = text.ends_with(".toml") || Catalogue.ids().any(|id| id == text);
        if !is_scenario && (Path::new(text).is_file() || text.contains(',')) {
            return Self::of_trace(text, call);
        }
        if !is_scenario {
            let known: Vec<String> = path_names().into_iter().chain(Catalogue.ids().map(str::to_owned)).collect();
            let near = nearest(text, known.iter().map(String::as_str))
                .map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let help = format!("{near}`paceline list paths` shows presets, `paceline list scenarios` scenarios");
            return Err(error(text, format!("there is no preset, scenario or file `{text}`"), help));
        }
        if let Call { video: Some(_), .. } | Call { media_use: Some(_), .. } | Call { duration: Some(_), .. } = call {
            let help =
                "video, use and duration are of calls over presets and traces: leave them out, or change the scenario";
            return Err(error(text, format!("the scenario `{text}` has media of its own"), help));
        }
        Ok(Self { name: text.to_owned(), origin: Catalogue.find(text)?, assumed: None })
    }

    /// Returns the call over a recorded capacity: `[NAME=]FILE[,BACK]`, the file of the way of the media and that of the way back.
    ///
    /// # Errors
    /// As those of [`find`](Self::find).
    pub fn of_trace(text: &str, call: &Call) -> Result<Self, ScenarioError> {
        let is_file = |text: &str| Path::new(text).is_file();
        let (name, files) = match text.split_once('=').filter(|_| !is_file(text)) {
            Some((name, files)) => (Some(name), files),
            None => (None, text),
        };
        let (file, back) = match files.split_once(',').filter(|_| !is_file(files)) {
            Some((file, back)) => (file, Some(back)),
            None => (files, None),
        };
        if [Some(file), back, name].into_iter().flatten().any(|part| part.trim().is_empty()) {
            let help = "write `FILE`, `FILE,BACK` with the trace of the way back, or `NAME=FILE`";
            return Err(error(text, format!("`{text}` is not the name of a trace: a part of it is empty"), help));
        }
        let read = |file: &str| text_file::read(Path::new(file)).map_err(|message| error(file, message, FORMATS));
        let name = name.unwrap_or_else(|| file.rsplit('/').next().unwrap_or(file));
        let back = back.map(|file| read(file).map(|text| (file, text))).transpose()?;
        Self::traced(name, (file, &read(file)?), back.as_ref().map(|(file, text)| (*file, text.as_str())), call)
    }

    /// Returns the call over the recorded capacity in a text, whose file has this name.
    ///
    /// # Errors
    /// The text is no trace, or the call does not apply to it.
    pub fn of_trace_text(file: &str, text: &str, call: &Call) -> Result<Self, ScenarioError> {
        Self::traced(file, (file, text), None, call)
    }

    /// Returns the call over traces, each a name and its text: of the way of the media, and of the way back.
    fn traced(name: &str, trace: (&str, &str), back: Option<(&str, &str)>, call: &Call) -> Result<Self, ScenarioError> {
        let what = format!("the trace {}", trace.0);
        let (trace, hop) = traced_hop(trace, Direction::Uplink)?;
        let mut path = format!("[path.forward]\n{hop}");
        let queue = (trace.mean_rate().as_bps_f64() / 8.0 * QUEUE.0).max(QUEUE.1).round();
        path += &format!("queue = {{ limit = \"{queue} B\" }}\n[path.reverse]\n");
        path += &back
            .map(|trace| traced_hop(trace, Direction::Downlink))
            .transpose()?
            .map_or(DELAY.to_owned(), |(_, hop)| hop);
        let seconds = trace.duration.as_secs_f64().min(SECONDS.0).max(SECONDS.1);
        let way_back = if back.is_some() { "" } else { ", and no limit on the way back" };
        let assumed = format!(
            "{name} is a trace of capacity alone. Assumed: a delay of 25 ms each way, a queue of 0.6 s at the mean rate{way_back}."
        );
        Self::over(name, &what, (&path, seconds), call, assumed)
    }

    fn over(
        name: &str,
        what: &str,
        (path, seconds): (&str, f64),
        call: &Call,
        assumed: String,
    ) -> Result<Self, ScenarioError> {
        let sources = template_sources(MediaKind::Video);
        let video = call.video.as_deref().unwrap_or("720p");
        let known = |name: &str| sources.iter().any(|source| source == name);
        let Some(source) = [video.to_owned(), format!("{video}30")].into_iter().find(|name| known(name)) else {
            let names: Vec<&str> = sources.iter().map(String::as_str).collect();
            return Err(error(name, format!("there is no video `{video}`"), super::suggestion(video, &names)));
        };
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let id = quoted(&name.split_whitespace().collect::<Vec<_>>().join("-"));
        let title = quoted(&format!("A {video} call over {what}"));
        let duration = quoted(&call.duration.clone().unwrap_or_else(|| format!("{} s", seconds.floor())));
        let media_use = call.media_use.as_ref().map_or(String::new(), |of| format!("use = {}\n", quoted(of)));
        let text = format!(
            "id = {id}\ntitle = {title}\nduration = {duration}\n{path}\n\n[[flow]]\nid = \"call\"\ncontroller = \"googcc\"\n\
             encoder = {{ source = \"{source}\" }}\n{media_use}"
        );
        let origin = Origin::from_text(format!("the call over {name}"), text);
        Ok(Self { name: name.to_owned(), origin, assumed: Some(assumed) })
    }
}

const DELAY: &str = "delay = \"25 ms\"\n";

/// Reads the trace of a file and returns it with the keys of its hop. Of a file with two links it is the one of this direction, or the only one.
fn traced_hop((file, text): (&str, &str), direction: Direction) -> Result<(Trace, String), ScenarioError> {
    let other = if direction == Direction::Uplink { Direction::Downlink } else { Direction::Uplink };
    let found = Trace::read(text, direction).map(|trace| (trace, direction));
    let (trace, direction) =
        found.or_else(|first| Trace::read(text, other).map(|t| (t, other)).map_err(|_| first)).map_err(|e| {
            let quoted = if e.text.is_empty() { String::new() } else { format!(": `{}`", e.text) };
            error(file, format!("{file}, line {}: {}{quoted}", e.line, e.cause), e.hint)
        })?;
    let delay = if trace.conditions.rtt.is_empty() { DELAY } else { "" };
    let direction = if direction == Direction::Uplink { "uplink" } else { "downlink" };
    let file = toml::Value::String(file.to_owned());
    let end = if trace.duration.is_positive() { "loop" } else { "hold" };
    Ok((trace, format!("capacity = {{ trace = {file}, direction = \"{direction}\", end = \"{end}\" }}\n{delay}")))
}

fn error(name: &str, message: String, help: impl Into<String>) -> ScenarioError {
    ScenarioError::of(name, "", message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, load};
    use paceline::Registry;
    use paceline_units::TimeDelta;

    fn real(file: &str) -> String {
        format!("{}/../../scenarios/real/{file}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn presets_scenarios_and_traces_are_calls() {
        let (trace, both) = (real("lte-like.mahimahi"), real("traces/alphartc.json"));
        for (text, name, seconds) in [
            ("dsl", "dsl", 120),
            ("adsl", "adsl", 120),
            ("wifi-fq-codel-down", "wifi-fq-codel-down", 120),
            ("mmsys16/table1", "mmsys16/table1", 200),
            (&trace, "lte-like.mahimahi", 40),
            (&format!("{trace},{trace}"), "lte-like.mahimahi", 40),
            (&both, "alphartc.json", 20),
        ] {
            let path = CallPath::find(text, &Call::default()).unwrap();
            let scenario = load(&path.origin, &Changes::default(), &Registry::standard()).unwrap();
            let found = (path.name.as_str(), scenario.plan.duration, path.assumed.is_some());
            assert_eq!(found, (name, TimeDelta::from_secs(seconds), !name.contains('/')), "{text}");
        }
        let call = Call { video: Some("1080p".into()), media_use: Some("game".into()), duration: Some("30 s".into()) };
        let path = CallPath::of_trace(&format!("my path={trace}"), &call).unwrap();
        let plan = load(&path.origin, &Changes::default(), &Registry::standard()).unwrap().plan;
        assert_eq!(
            (path.name.as_str(), plan.id.as_str(), plan.duration),
            ("my path", "my-path", TimeDelta::from_secs(30))
        );
    }

    #[test]
    fn wrong_paths_are_errors_with_hints() {
        let (trace, no_trace) = (real("lte-like.mahimahi"), real("lte.toml"));
        let of = |video: &str| Call { video: Some(video.to_owned()), ..Call::default() };
        let all = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            CallPath::find_all(&[], &paths, &of("720p")).map(|mut paths| paths.remove(0))
        };
        let checks: [(Result<_, _>, &str, &str); 9] = [
            (all(&[]), "no path", "--trace FILE"),
            (all(&["dsl", "adsl", "dsl"]), "two paths", "NAME=FILE"),
            (CallPath::find("adls", &of("720p")), "no preset, scenario or file", "did you mean `adsl"),
            (CallPath::of_trace("none.up", &of("720p")), "cannot read none.up", "paceline list traces"),
            (CallPath::of_trace(&format!("{trace},"), &of("720p")), "a part of it is empty", "FILE,BACK"),
            (CallPath::of_trace(&format!("={trace}"), &of("720p")), "a part of it is empty", "NAME=FILE"),
            (CallPath::of_trace(&no_trace, &of("720p")), "line 1: ", "known formats"),
            (CallPath::find("mmsys16/table1", &of("720p")), "media of its own", "leave them out"),
            (CallPath::find("adsl", &of("721p")), "no video `721p`", "720p30"),
        ];
        for (found, message, hint) in checks {
            let error = found.unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{error}: {:?}", error.hint());
        }
    }
}
