//! Source presets: typical media by name. Each is a file `scenarios/sources/NAME.source.toml` with one stream or several.
//! `encoder = { source = "NAME" }` takes the keys of its stream; several streams replace the one of the flow.

use super::catalogue::{SOURCE_PRESET, source_preset_texts};
use super::error::ScenarioError;
use super::text_span::{HasTextSpan, Sources, TextSpan};
use super::tree::{Entries, Node, Value, keep_from_layer, overlay};
use serde::Deserialize;

/// A source preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePreset {
    /// Its name.
    pub name: &'static str,
    /// A description, in one line.
    pub title: String,
    /// Where its numbers come from.
    pub origin: String,
}

#[derive(Deserialize)]
struct PresetFile {
    title: String,
    origin: String,
}

/// Returns every preset, in order.
///
/// # Panics
/// A shipped file is no preset.
pub fn source_presets() -> Vec<SourcePreset> {
    let of_file = |(file, text): (&'static str, &str)| {
        let PresetFile { title, origin } = toml::from_str(text).expect("a shipped preset has a title and an origin");
        SourcePreset { name: name_of(file), title, origin }
    };
    source_preset_texts().map(of_file).collect()
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file).trim_end_matches(SOURCE_PRESET)
}

/// Replaces the presets of all flows by their keys. Keys that the same layer or a later one writes beside a preset stay.
pub(crate) fn apply<'a>(root: &mut Node, sources: &mut Sources<'a>) -> Result<(), ScenarioError> {
    let Some(Value::List(flows)) = root.get_mut("flow").map(|flows| &mut flows.value) else { return Ok(()) };
    for flow in flows {
        of_flow(flow, sources)?;
    }
    Ok(())
}

fn of_flow<'a>(flow: &mut Node, sources: &mut Sources<'a>) -> Result<(), ScenarioError> {
    if let Some(Value::List(streams)) = flow.get_mut("stream").map(|streams| &mut streams.value) {
        for stream in streams {
            if let Some(encoder) = stream.get_mut("encoder") {
                one_stream(encoder, sources)?;
            }
        }
    }
    if let Some(audio) = flow.get_mut("audio") {
        one_stream(audio, sources)?;
    }
    let Some(encoder) = flow.get_mut("encoder") else { return Ok(()) };
    let Some(preset) = preset(encoder, sources)? else { return Ok(()) };
    match preset.streams.as_slice() {
        [_] => preset.replace(encoder),
        _ => several_streams(flow, &preset, sources)?,
    }
    Ok(())
}

/// A preset in a table of a source.
struct Preset {
    name: String,
    /// The value of `source`.
    at: TextSpan,
    streams: Vec<Node>,
}

/// Returns the preset that `source` names.
fn preset<'a>(table: &Node, sources: &mut Sources<'a>) -> Result<Option<Preset>, ScenarioError> {
    let Some(Value::Text(name)) = table.get("source").map(|source| &source.value) else { return Ok(None) };
    let Some((file, text)) = source_preset_texts().find(|(file, _)| name_of(file) == name) else { return Ok(None) };
    let (name, at) = (name.clone(), table.get("source").expect("it was found").text_span());
    let source = sources.add(format!("scenarios/{file}"), text, format!("of the source preset {name}"));
    let streams = Node::document(sources, source)?.tables_of("stream").to_vec();
    Ok(Some(Preset { name, at, streams }))
}

impl Preset {
    /// Replaces a table of a source by the keys of the only stream, with the keys that are written beside the preset.
    fn replace(&self, table: &mut Node) {
        let mut merged = self.streams[0].get("encoder").and_then(Node::entries).cloned().unwrap_or_default();
        let mut own = std::mem::take(table.make_table(self.at));
        own.remove("source");
        keep_from_layer(&mut own, self.at.source());
        overlay(&mut merged, own);
        table.value = Value::Table(merged);
    }
}

fn one_stream<'a>(table: &mut Node, sources: &mut Sources<'a>) -> Result<(), ScenarioError> {
    let Some(preset) = preset(table, sources)? else { return Ok(()) };
    if preset.streams.len() != 1 {
        let message = format!("`{}` has {} streams", preset.name, preset.streams.len());
        return Err(sources.error(&preset.at, message).help("write it as `encoder` of a flow without [[flow.stream]]"));
    }
    preset.replace(table);
    Ok(())
}

/// Replaces `encoder` and `audio` by the streams of a preset, and one of the audio.
fn several_streams<'a>(flow: &mut Node, preset: &Preset, sources: &Sources<'a>) -> Result<(), ScenarioError> {
    if flow.get("stream").is_some() {
        let message = format!("`{}` has several streams, and this flow has streams of its own", preset.name);
        return Err(sources.error(&preset.at, message).help("leave out one of the two"));
    }
    let flow = flow.make_table(preset.at);
    let (key, encoder) = flow.remove("encoder").expect("it names the preset");
    let mut own = encoder.entries().cloned().unwrap_or_default();
    own.remove("source");
    keep_from_layer(&mut own, preset.at.source());
    if let Some((span, _)) = own.values().next() {
        let message = format!("`{}` has several streams, so no key can stand beside it", preset.name);
        return Err(sources.error(span, message).help("copy its streams into [[flow.stream]] to change them"));
    }
    let mut streams = preset.streams.clone();
    if let Some((span, mut audio)) = flow.remove("audio") {
        let text = |text: &str| (span, Node { value: Value::Text(text.to_owned()), text_span: span });
        audio.make_table(span).entry("source".to_owned()).or_insert_with(|| text("audio"));
        let stream = Entries::from([("id".to_owned(), text("audio")), ("encoder".to_owned(), (span, audio))]);
        streams.push(Node { value: Value::Table(stream), text_span: span });
    }
    flow.insert("stream".to_owned(), (key, Node { value: Value::List(streams), text_span: preset.at }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, Origin, Scenario, load};
    use paceline::Registry;
    use paceline_netsim::flow::source::SOURCES;
    use paceline_units::Rate;

    fn loaded(media: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
        let path = "path = { preset = \"vdsl-up\" }";
        let text = format!(
            "id = \"a/b\"\ntitle = \"A call\"\nduration = \"60 s\"\n{path}\n[[flow]]\nid = \"call\"\ncontroller = \"gcc-2016\"\n{media}\n"
        );
        let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
        load(&Origin::from_text("a.toml", text), &Changes { settings, ..Changes::default() }, &Registry::standard())
    }

    /// Id, name of the source, lowest and highest rate in kbit/s, and lines of each stream.
    fn streams(scenario: &Scenario) -> Vec<(String, &'static str, u64, u64, Option<u32>)> {
        let paceline_netsim::plan::FlowKind::Media(media) = &scenario.plan.flows[0].kind else { panic!("media") };
        let kbps = |rate: Rate| rate.as_bps() / 1000;
        let of = |stream: &paceline_netsim::plan::StreamPlan| {
            let (config, (min, max)) = (&stream.source.config, stream.source.config.range());
            (stream.id.clone(), stream.source.entry.name, kbps(min), kbps(max), config.picture_lines())
        };
        media.streams.iter().map(of).collect()
    }

    #[test]
    fn every_preset_loads_by_its_name() {
        let all = source_presets();
        assert!(all.len() >= 6, "{}", all.len());
        for SourcePreset { name, title, origin } in all {
            let key = if name.starts_with("audio") { "encoder = { max = \"1 Mbps\" }\naudio" } else { "encoder" };
            let scenario =
                loaded(&format!("{key} = {{ source = \"{name}\" }}"), &[]).unwrap_or_else(|e| panic!("{e:?}"));
            assert!(!streams(&scenario).is_empty() && !title.is_empty() && !origin.is_empty(), "{name}");
            assert!(SOURCES.iter().all(|entry| entry.name != name), "{name} hides a source");
        }
    }

    #[test]
    fn keys_beside_a_preset_replace_its_values() {
        let media = "encoder = { source = \"720p30\", max = \"1 Mbps\" }\naudio = { source = \"audio-32k\" }";
        let audio = || ("audio".to_owned(), "audio", 32, 32, None);
        let video = |max, lines| ("video".to_owned(), "encoder", 30, max, Some(lines));
        assert_eq!(streams(&loaded(media, &[]).unwrap()), [video(1000, 720), audio()]);
        assert_eq!(streams(&loaded(media, &["flow.call.encoder.max=900 kbps"]).unwrap())[0], video(900, 720));
        // A preset by --set replaces what the file says of the source.
        assert_eq!(streams(&loaded(media, &["flow.call.encoder.source=360p30"]).unwrap()), [video(1700, 360), audio()]);
        let stream = "[[flow.stream]]\nid = \"video\"\nencoder = { source = \"720p30\" }";
        assert_eq!(streams(&loaded(stream, &[]).unwrap()), [video(2500, 720)]);
    }

    #[test]
    fn several_streams_replace_the_one_of_the_flow() {
        let media = "encoder = { source = \"simulcast-720p\" }\naudio = { rate = \"20 kbps\" }";
        let layer = |id: &str, min, max, lines| (id.to_owned(), "encoder", min, max, Some(lines));
        assert_eq!(
            streams(&loaded(media, &[]).unwrap()),
            [
                layer("low", 30, 150, 180),
                layer("middle", 150, 500, 360),
                layer("high", 600, 2500, 720),
                ("audio".to_owned(), "audio", 20, 20, None),
            ]
        );
        for (media, message) in [
            ("encoder = { source = \"simulcast-720p\", max = \"1 Mbps\" }", "no key can stand beside it"),
            ("audio = { source = \"simulcast-720p\" }", "has 3 streams"),
            ("encoder = { source = \"720p\" }", "no source `720p`"),
        ] {
            let error = format!("{:?}", miette::Report::new(loaded(media, &[]).unwrap_err()));
            assert!(error.contains(message), "{error}");
        }
    }
}
