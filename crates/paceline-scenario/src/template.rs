// SPDX-License-Identifier: MIT OR Apache-2.0
//! New scenarios: commented files for people who write their first one.

use super::preset::{path_presets, source_presets};
use paceline_netsim::flow::MediaKind;
use paceline_netsim::flow::source::SOURCES;
use std::fmt::Write;

/// What a new scenario contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Name of a path preset.
    pub path: String,
    /// Name of a source of video, or of a preset.
    pub source: String,
    /// Name of a source of audio, or of a preset; `None` for a call without audio.
    pub audio: Option<String>,
    /// Name of a controller.
    pub controller: String,
    /// TCP flow beside the call.
    pub traffic: Traffic,
    /// Length of a run, such as `60 s`.
    pub duration: String,
}

/// A TCP flow beside a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// None.
    #[default]
    None,
    /// To the user.
    Download,
    /// From the user.
    Upload,
}

impl Traffic {
    /// Every value with its name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("none", Self::None), ("download", Self::Download), ("upload", Self::Upload)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

/// Returns the names that [`Template::source`] and [`Template::audio`] may have: presets, then sources that need no files.
pub fn template_sources(kind: MediaKind) -> Vec<String> {
    let is_audio = |name: &str| name.starts_with("audio");
    let presets = source_presets().into_iter().map(|preset| preset.name);
    let presets = presets.filter(|name| is_audio(name) == (kind == MediaKind::Audio));
    let entries = SOURCES.iter().filter(|entry| entry.kind == kind && entry.implied_by.is_none());
    presets.chain(entries.map(|entry| entry.name.to_owned())).collect()
}

impl Template {
    /// Returns the text of the scenario.
    pub fn text(&self) -> String {
        let Self { path, source, audio, controller, traffic, duration } = self;
        // The command of an external controller may have quotes.
        let controller = controller.replace('\\', "\\\\").replace('"', "\\\"");
        let path_title = path_presets().into_iter().find(|preset| preset.name == *path).map(|preset| preset.title);
        let path_title = path_title.unwrap_or_default();
        let title = match traffic {
            Traffic::None => format!("A call over {path}"),
            _ => format!("A call over {path}, beside {} {}", article(traffic.name()), traffic.name()),
        };
        let mut text = format!(
            r#"# A scenario of Paceline. Times are in s or ms, rates in kbps or Mbps, sizes in B or KB. `paceline schema` describes every key.
# Each key can be changed for one run: --set flow.call.start_rate=1Mbps
id = "my/call"
title = "{title}"
duration = "{duration}"

# {path_title}. `paceline list paths` shows others.
# Keys under [path] replace those of the preset. For a recorded trace of the capacity:
#   forward.capacity = {{ trace = "uplink.mahimahi" }}
[path]
preset = "{path}"

# The call. `paceline list controllers` shows the controllers and `paceline list sources` the media.
[[flow]]
id = "call"
controller = "{controller}"
# {}. Keys beside `source` replace its values, such as max = "1 Mbps".
encoder = {{ source = "{source}" }}
"#,
            title_of(source)
        );
        let mut add = |line: std::fmt::Arguments<'_>| text.write_fmt(line).expect("writing to memory does not fail");
        if let Some(audio) = audio {
            add(format_args!("# {}\naudio = {{ source = \"{audio}\" }}\n", title_of(audio)));
        }
        if *traffic != Traffic::None {
            // Forward flows leave the user over a preset `-up`, and reach the user over a preset `-down`.
            let forward = path.ends_with("-up") == (*traffic == Traffic::Upload);
            add(format_args!(
                "\n# A TCP flow. Its data takes the way {}.\n[[flow]]\nid = \"{}\"\nkind = \"tcp\"\ndirection = \"{}\"\n",
                if forward { "of the call" } else { "back, beside the call's feedback" },
                traffic.name(),
                if forward { "forward" } else { "reverse" },
            ));
        }
        add(format_args!(
            r#"
# A bound that every run is judged by: at most 5 % of the call frozen. `paceline list metrics` shows what can be bounded.
[[assert]]
id = "few-freezes"
metric = "freeze_ratio"
flow = "call"
bounds = [0, 0.05]
"#
        ));
        text
    }
}

/// Returns the description of a source or a preset, as a sentence without its end.
fn title_of(name: &str) -> String {
    let preset = source_presets().into_iter().find(|preset| preset.name == name).map(|preset| preset.title);
    let entry = || SOURCES.iter().find(|entry| entry.name == name).map(|entry| entry.summary.to_owned());
    let title = preset.or_else(entry).unwrap_or_default();
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, Origin, load};
    use paceline::Registry;
    use paceline_netsim::plan::FlowKind;

    fn template(path: &str, source: &str, traffic: Traffic) -> Template {
        Template {
            path: path.to_owned(),
            source: source.to_owned(),
            audio: Some("audio-32k".to_owned()),
            controller: "gcc-tfb".to_owned(),
            traffic,
            duration: "60 s".to_owned(),
        }
    }

    #[test]
    fn every_choice_is_a_scenario_with_the_chosen_parts() {
        let registry = Registry::standard();
        let videos = template_sources(MediaKind::Video);
        for (index, preset) in path_presets().iter().enumerate() {
            let traffic = Traffic::NAMES[index % 3].1;
            let text = template(&preset.name, &videos[index % videos.len()], traffic).text();
            assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
            let scenario = load(&Origin::from_text("call.toml", &text), &Changes::default(), &registry).unwrap();
            let flows = &scenario.plan.flows;
            assert_eq!(flows.len(), if traffic == Traffic::None { 1 } else { 2 });
            let FlowKind::Media(media) = &flows[0].kind else { panic!("the call is media") };
            assert!(media.streams.iter().any(|stream| stream.kind == MediaKind::Audio));
            // The data of the download shares the hop of the call if the call reaches the user.
            let shares = flows.get(1).map(|tcp| tcp.route == flows[0].route);
            let expected =
                (traffic != Traffic::None).then_some((traffic == Traffic::Download) == preset.name.ends_with("-down"));
            assert_eq!(shares, expected, "{}", preset.name);
        }
    }

    #[test]
    fn audio_is_optional() {
        let text = Template { audio: None, ..template("adsl-up", "360p30", Traffic::None) }.text();
        assert!(!text.contains("audio ="), "{text}");
        load(&Origin::from_text("call.toml", text), &Changes::default(), &Registry::standard()).unwrap();
    }
}
