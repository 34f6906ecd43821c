// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presets: typical paths and media by name, each a file of the catalogue.
//!
//! `scenarios/paths/NAME.path.toml` is an access network, with the hop from a user to the network (`up`) and the hop back (`down`).
//! `path.preset = "NAME-up"` puts the sender of the forward flows at the user, `"NAME-down"` the receiver.
//!
//! `scenarios/sources/NAME.source.toml` has one stream or several. `encoder = { source = "NAME" }` takes the keys of its stream;
//! several streams replace the one of the flow.

use super::catalogue::{PATH_ALIASES, PATH_PRESET, SOURCE_PRESET, shipped};
use super::error::{ScenarioError, suggestion};
use super::text_span::{HasTextSpan, Sources, TextSpan};
use super::tree::{Entries, Node, Value, keep_from_layer, overlay};
use paceline_netsim::flow::source::SourceEntry;
use paceline_netsim::parameter::RegistryEntry;
use serde::Deserialize;

/// A preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name; that of a path has the direction.
    pub name: String,
    /// A description, in one line.
    pub title: String,
    /// The sources of its numbers.
    pub source: String,
    /// The keys of the forward hop of a path, as the file writes them: key and value.
    pub keys: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct PresetFile {
    title: String,
    #[serde(alias = "origin")]
    source: String,
    #[serde(default)]
    up: toml::Table,
    #[serde(default)]
    down: toml::Table,
}

impl PresetFile {
    /// Reads the text of a shipped file.
    fn read(text: &str) -> Self {
        toml::from_str(text).expect("a shipped preset has a title and a source")
    }
}

/// Returns the shipped files with this ending: name, file and text.
fn files(ending: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    shipped(ending).map(|(id, file, text)| (id.rsplit('/').next().unwrap_or(id), file, text))
}

/// Returns every preset of paths, in order.
///
/// # Panics
/// A shipped file is no preset.
pub fn path_presets() -> Vec<Preset> {
    let of_file = |(name, _, text): (&str, &str, &str)| {
        let PresetFile { title, source, up, down } = PresetFile::read(text);
        [("up", "from the user", up), ("down", "to the user", down)].map(|(direction, way, hop)| Preset {
            name: format!("{name}-{direction}"),
            title: format!("{title}, {way}"),
            source: source.clone(),
            keys: hop.into_iter().map(|(key, value)| (key, value.to_string())).collect(),
        })
    };
    files(PATH_PRESET).flat_map(of_file).collect()
}

/// Returns a preset of paths: `adsl-down`, or `adsl` or `dsl`, which are `adsl-up`.
pub fn path_preset(name: &str) -> Option<Preset> {
    let base = PATH_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name);
    path_presets().into_iter().find(|preset| preset.name == base || preset.name.strip_suffix("-up") == Some(base))
}

/// Returns every name that [`path_preset`] finds, except those without a direction.
pub fn path_names() -> Vec<String> {
    let others = PATH_ALIASES.iter().map(|(alias, _)| (*alias).to_owned());
    path_presets().into_iter().map(|preset| preset.name).chain(others).collect()
}

/// Returns every preset of sources, in order.
///
/// # Panics
/// A shipped file is no preset.
pub fn source_presets() -> Vec<Preset> {
    let of_file = |(name, _, text): (&str, &str, &str)| {
        let PresetFile { title, source, .. } = PresetFile::read(text);
        Preset { name: name.to_owned(), title, source, keys: Vec::new() }
    };
    files(SOURCE_PRESET).map(of_file).collect()
}

/// Replaces a table that names a preset under `key`, at `at`, by the keys of the preset. Keys that the same layer or a later one
/// writes beside it stay; those of earlier layers belong to what the preset replaces.
fn replace(table: &mut Node, key: &str, at: TextSpan, mut keys: Entries) {
    let mut own = std::mem::take(table.make_table(at));
    own.remove(key);
    keep_from_layer(&mut own, at.source());
    overlay(&mut keys, own);
    table.value = Value::Table(keys);
}

/// Replaces `path.preset` by its keys. Returns a note on the preset.
pub(crate) fn apply_to_path(root: &mut Node, sources: &mut Sources<'_>) -> Result<Option<String>, ScenarioError> {
    let Some(preset) = root.get("path").and_then(|path| path.get("preset")) else { return Ok(None) };
    let Value::Text(name) = preset.value.clone() else { return Ok(None) };
    let at = preset.text_span();
    let found = name.rsplit_once('-').and_then(|(base, direction)| {
        let hops = [("up", "down"), ("down", "up")].into_iter().find(|(forward, _)| *forward == direction)?;
        Some((hops, files(PATH_PRESET).find(|(known, ..)| *known == base)?))
    });
    let Some(((forward, reverse), (_, file, text))) = found else {
        let all = path_presets();
        let names: Vec<&str> = all.iter().map(|preset| preset.name.as_str()).collect();
        let error = sources.error(&at, format!("there is no path preset `{name}`"));
        return Err(error.help(suggestion(&name, &names)));
    };
    let source = sources.add(format!("scenarios/{file}"), text, format!("of the path preset {name}"));
    let document = Node::document(sources, source)?;
    let hops = [("forward", forward), ("reverse", reverse)];
    let hops = hops.into_iter().filter_map(|(key, hop)| Some((key.to_owned(), (at, document.get(hop)?.clone()))));
    replace(root.get_mut("path").expect("it has a preset"), "", at, hops.collect());
    let PresetFile { title, source, .. } = PresetFile::read(text);
    Ok(Some(format!("path {name}: {title}; {source}")))
}

/// Returns the source of this name, also that of a preset with one stream.
pub(crate) fn source_entry(name: &str) -> Option<&'static SourceEntry> {
    SourceEntry::find(name).or_else(|| {
        let (_, _, text) = files(SOURCE_PRESET).find(|(known, ..)| *known == name)?;
        let file: toml::Table = toml::from_str(text).ok()?;
        let [stream] = file.get("stream")?.as_array()?.as_slice() else { return None };
        SourceEntry::find(stream.get("encoder")?.get("source")?.as_str()?)
    })
}

/// Replaces the presets of the sources of all flows by their keys.
pub(crate) fn apply_to_sources(root: &mut Node, sources: &mut Sources<'_>) -> Result<(), ScenarioError> {
    for flow in root.get_mut("flow").map_or(&mut [][..], Node::elements_mut) {
        for stream in flow.get_mut("stream").map_or(&mut [][..], Node::elements_mut) {
            one_stream(stream.get_mut("encoder"), sources)?;
        }
        one_stream(flow.get_mut("audio"), sources)?;
        let Some(encoder) = flow.get_mut("encoder") else { continue };
        match Streams::find(encoder, sources)? {
            Some(preset) if preset.streams.len() == 1 => preset.put(encoder),
            Some(preset) => several_streams(flow, preset, sources)?,
            None => {}
        }
    }
    Ok(())
}

/// The streams of a preset that a table of a source names.
struct Streams {
    name: String,
    /// The value of `source`.
    at: TextSpan,
    streams: Vec<Node>,
}

impl Streams {
    fn find(table: &Node, sources: &mut Sources<'_>) -> Result<Option<Self>, ScenarioError> {
        let Some((name, at)) = table.get("source").and_then(|node| Some((node.text()?, node.text_span()))) else {
            return Ok(None);
        };
        let Some((_, file, text)) = files(SOURCE_PRESET).find(|(known, ..)| *known == name) else { return Ok(None) };
        let source = sources.add(format!("scenarios/{file}"), text, format!("of the source preset {name}"));
        let streams = Node::document(sources, source)?.tables_of("stream").to_vec();
        Ok(Some(Self { name: name.to_owned(), at, streams }))
    }

    /// Replaces a table of a source by the keys of the only stream.
    fn put(self, table: &mut Node) {
        let keys = self.streams[0].get("encoder").and_then(Node::entries).cloned();
        replace(table, "source", self.at, keys.unwrap_or_default());
    }
}

/// Replaces the preset of a table of a source that can have one stream.
fn one_stream(table: Option<&mut Node>, sources: &mut Sources<'_>) -> Result<(), ScenarioError> {
    let Some(table) = table else { return Ok(()) };
    let Some(preset) = Streams::find(table, sources)? else { return Ok(()) };
    if preset.streams.len() != 1 {
        let error = sources.error(&preset.at, format!("`{}` has {} streams", preset.name, preset.streams.len()));
        return Err(error.help("write it as `encoder` of a flow without [[flow.stream]]"));
    }
    preset.put(table);
    Ok(())
}

/// Replaces `encoder` and `audio` of a flow by the streams of a preset, and one of the audio.
fn several_streams(flow: &mut Node, preset: Streams, sources: &Sources<'_>) -> Result<(), ScenarioError> {
    let Streams { name, at, mut streams } = preset;
    if flow.get("stream").is_some() {
        let message = format!("`{name}` has several streams, and this flow has streams of its own");
        return Err(sources.error(&at, message).help("leave out one of the two"));
    }
    let flow = flow.make_table(at);
    let (key, encoder) = flow.remove("encoder").expect("it names the preset");
    let mut own = encoder.entries().cloned().unwrap_or_default();
    own.remove("source");
    keep_from_layer(&mut own, at.source());
    if let Some((span, _)) = own.values().next() {
        let message = format!("`{name}` has several streams, so no key can stand beside it");
        return Err(sources.error(span, message).help("copy its streams into [[flow.stream]] to change them"));
    }
    if let Some((span, mut audio)) = flow.remove("audio") {
        let text = |text: &str| (span, Node { value: Value::Text(text.to_owned()), text_span: span });
        audio.make_table(span).entry("source".to_owned()).or_insert_with(|| text("audio"));
        let stream = Entries::from([("id".to_owned(), text("audio")), ("encoder".to_owned(), (span, audio))]);
        streams.push(Node { value: Value::Table(stream), text_span: span });
    }
    flow.insert("stream".to_owned(), (key, Node { value: Value::List(streams), text_span: at }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, Origin, Scenario, load};
    use paceline::Registry;
    use paceline_netsim::flow::source::SOURCES;
    use paceline_units::{DataSize, Rate, Time, TimeDelta};

    fn loaded(path: &str, media: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
        let text = format!(
            "id = \"a/b\"\ntitle = \"A call\"\nduration = \"60 s\"\n{path}\n[[flow]]\nid = \"call\"\ncontroller = \"gcc-2016\"\n{media}\n"
        );
        let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
        load(&Origin::from_text("a.toml", text), &Changes { settings, ..Changes::default() }, &Registry::standard())
    }

    fn with_media(media: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
        loaded("path = { preset = \"vdsl-up\" }", media, settings)
    }

    /// The delay, the MTU, and the mean rate in Mbit/s of the forward and the reverse hop.
    fn hops(scenario: &Scenario) -> [(TimeDelta, DataSize, f64); 2] {
        let hop = |index: usize| {
            let hop = &scenario.plan.hops[index];
            let volume = hop.capacity.as_ref().unwrap().volume(Time::ZERO, Time::from_secs(60));
            (*hop.delay.at(Time::ZERO), *hop.mtu.at(Time::ZERO), volume.as_bits() as f64 / 60e6)
        };
        [hop(0), hop(1)]
    }

    #[test]
    fn every_path_runs_in_both_directions() {
        let all = path_presets();
        assert!(all.len() >= 20, "{}", all.len());
        for Preset { name, source, .. } in all {
            let scenario = loaded(&format!("path = {{ preset = \"{name}\" }}"), "", &[]).unwrap();
            let [forward, reverse] = hops(&scenario);
            // Uplinks are slower.
            assert_eq!(forward.2 < reverse.2, name.ends_with("-up"), "{name}: {forward:?} {reverse:?}");
            assert!(scenario.notes.iter().any(|note| note.contains(&name) && note.contains(&source)), "{name}");
        }
    }

    #[test]
    fn keys_beside_a_path_replace_its_values() {
        let ms = TimeDelta::from_millis;
        let path = "[path]\npreset = \"adsl-up\"\n[path.forward]\ncapacity = \"2 Mbps\"\n";
        let [forward, reverse] = hops(&loaded(path, "", &[]).unwrap());
        assert_eq!((forward, reverse.0, reverse.2), ((ms(20), DataSize::from_bytes(1500), 2.0), ms(20), 12.0));
        // A preset by --set replaces what the file says of the path, and later --set values replace those of the preset.
        let settings = ["path.forward.mtu=1000 B", "path.preset=vpn-transcontinental-down", "path.reverse.delay=1 ms"];
        let [forward, reverse] = hops(&loaded(path, "", &settings).unwrap());
        assert_eq!(forward, (ms(90), DataSize::from_bytes(1400), 50.0), "the mtu before it is gone, too");
        assert_eq!(reverse, (ms(1), DataSize::from_bytes(1400), 20.0));
    }

    #[test]
    fn an_unknown_path_is_an_error_with_a_hint() {
        let error = loaded("path = { preset = \"lte-driv-up\" }", "", &[]).unwrap_err();
        assert_eq!(error.offending(), Some("\"lte-driv-up\""));
        assert!(error.hint().unwrap().contains("did you mean `lte-drive-up`?"), "{:?}", error.hint());
        for name in ["adsl", "adsl-sideways", "-up"] {
            assert!(loaded(&format!("path = {{ preset = \"{name}\" }}"), "", &[]).is_err(), "{name}");
        }
    }

    #[test]
    fn a_preset_and_a_trace_fit_any_shipped_scenario() {
        let registry = Registry::standard();
        for set in ["path.preset=lte-drive-up", "path.forward.capacity={ trace = \"shipped:paths/lte-drive-up.csv\" }"]
        {
            let changes = Changes { settings: vec![set.parse().unwrap()], ..Changes::default() };
            let scenario = load(&crate::Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap();
            assert!(scenario.plan.hops[0].server.service.burst.is_none(), "no token bucket of the paper: {set}");
        }
    }

    #[test]
    fn an_empty_value_unsets_a_key_and_its_constant() {
        let registry = Registry::standard();
        let loaded = |settings: &[&str]| {
            let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
            let changes = Changes { settings, ..Changes::default() };
            load(&crate::Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap()
        };
        let note = |scenario: &Scenario, key: &str| scenario.notes.iter().any(|note| note.contains(key));
        let (before, after) =
            (loaded(&[]), loaded(&["path.forward.server.burst=", "flow.video.start_rate=", "media.config.gamma_0="]));
        for key in ["path.forward.server.burst", "media.start_rate", "media.config.gamma_0"] {
            assert!(note(&before, key) && !note(&after, key), "{key}: {:?}", after.notes);
        }
        assert!(
            before.plan.hops[0].server.service.burst.is_some() && after.plan.hops[0].server.service.burst.is_none()
        );
        // A key of the file, and one that is not there.
        let without = loaded(&["path.forward.queue=", "flow.video.nothing="]);
        let default = TimeDelta::from_millis(300);
        assert_eq!(without.plan.hops[0].queue.limit, paceline_netsim::link::queue::QueueLimit::DrainTime(default));
        // A later value counts.
        assert!(
            loaded(&["path.forward.server.burst=", "path.forward.server.burst=5 KB"]).plan.hops[0]
                .server
                .service
                .burst
                .is_some()
        );
    }

    /// Id, name of the source, lowest and highest rate in kbit/s, and lines of each stream.
    fn streams(scenario: &Scenario) -> Vec<(String, &'static str, u64, u64, Option<u32>)> {
        let paceline_netsim::plan::FlowKind::Media(media) = &scenario.plan.flows[0].kind else { panic!("media") };
        let kbps = |rate: Rate| rate.as_bps() / 1000;
        let of = |stream: &paceline_netsim::plan::StreamPlan| {
            let (source, (min, max)) = (&stream.source, stream.source.range());
            (stream.id.clone(), source.entry.name, kbps(min), kbps(max), source.lines)
        };
        media.streams.iter().map(of).collect()
    }

    #[test]
    fn every_source_loads_by_its_name() {
        let all = source_presets();
        assert!(all.len() >= 6, "{}", all.len());
        for Preset { name, title, source, .. } in all {
            let key = if name.starts_with("audio") { "encoder = { max = \"1 Mbps\" }\naudio" } else { "encoder" };
            let scenario =
                with_media(&format!("{key} = {{ source = \"{name}\" }}"), &[]).unwrap_or_else(|e| panic!("{e:?}"));
            assert!(!streams(&scenario).is_empty() && !title.is_empty() && !source.is_empty(), "{name}");
            assert!(SOURCES.iter().all(|entry| entry.name != name), "{name} hides a source");
        }
    }

    #[test]
    fn keys_beside_a_source_replace_its_values() {
        let media = "encoder = { source = \"720p30\", max = \"1 Mbps\" }\naudio = { source = \"audio-32k\" }";
        let audio = || ("audio".to_owned(), "audio", 32, 32, None);
        let video = |max, lines| ("video".to_owned(), "encoder", 30, max, Some(lines));
        assert_eq!(streams(&with_media(media, &[]).unwrap()), [video(1000, 720), audio()]);
        assert_eq!(streams(&with_media(media, &["flow.call.encoder.max=900 kbps"]).unwrap())[0], video(900, 720));
        assert_eq!(streams(&with_media(media, &["media.encoder.max=800 kbps"]).unwrap())[0], video(800, 720));
        let error = with_media(media, &["media.encoder.frames=f"]).unwrap_err().to_string();
        assert!(error.contains("no flow reads"), "{error}");
        // A preset by --set replaces what the file says of the source.
        assert_eq!(
            streams(&with_media(media, &["flow.call.encoder.source=360p30"]).unwrap()),
            [video(1700, 360), audio()]
        );
        let stream = "[[flow.stream]]\nid = \"video\"\nencoder = { source = \"720p30\" }";
        assert_eq!(streams(&with_media(stream, &[]).unwrap()), [video(2500, 720)]);
    }

    #[test]
    fn several_streams_replace_the_one_of_the_flow() {
        let media = "encoder = { source = \"simulcast-720p\" }\naudio = { rate = \"20 kbps\" }";
        let layer = |id: &str, min, max, lines| (id.to_owned(), "encoder", min, max, Some(lines));
        assert_eq!(
            streams(&with_media(media, &[]).unwrap()),
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
            let error = format!("{:?}", miette::Report::new(with_media(media, &[]).unwrap_err()));
            assert!(error.contains(message), "{error}");
        }
    }
}
