//! Path presets: typical access networks by name. Each is a file `scenarios/paths/NAME.path.toml` with the hop from a user to the
//! network (`up`) and the hop back (`down`). `path.preset = "NAME-up"` puts the sender of the forward flows at the user,
//! `"NAME-down"` the receiver.

use super::catalogue::{PATH_PRESET, path_preset_texts};
use super::error::{ScenarioError, suggestion};
use super::text_span::{HasTextSpan, Sources};
use super::tree::{Entries, Node, Value, keep_from_layer, overlay};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A path preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPreset {
    /// Its name, with the direction.
    pub name: String,
    /// A description, in one line.
    pub title: String,
    /// The sources of its numbers.
    pub source: String,
    /// The keys of its forward hop, as the file writes them: key and value.
    pub keys: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct PresetFile {
    title: String,
    source: String,
    #[serde(flatten)]
    hops: BTreeMap<String, toml::Table>,
}

/// The forward and the reverse hop of each direction.
const DIRECTIONS: [(&str, [&str; 2]); 2] = [("up", ["up", "down"]), ("down", ["down", "up"])];

/// Returns every preset, in order.
///
/// # Panics
/// A shipped file is no preset.
pub fn path_presets() -> Vec<PathPreset> {
    let of_file = |(file, text): (&str, &str)| {
        let file_text: PresetFile = toml::from_str(text).expect("a shipped preset has a title and a source");
        let PresetFile { title, source, hops } = file_text;
        let name = name_of(file);
        DIRECTIONS.map(|(direction, [forward, _])| {
            let title = format!("{title}, {}", if direction == "up" { "from the user" } else { "to the user" });
            let keys = hops.get(forward).into_iter().flatten().map(|(key, value)| (key.clone(), value.to_string()));
            PathPreset { name: format!("{name}-{direction}"), title, source: source.clone(), keys: keys.collect() }
        })
    };
    path_preset_texts().flat_map(of_file).collect()
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file).trim_end_matches(PATH_PRESET)
}

/// Replaces `path.preset` by its keys. Keys of the path that the same layer or a later one writes stay; those of earlier layers
/// belong to the path that the preset replaces. Returns a note on the preset.
pub(crate) fn apply<'a>(root: &mut Node, sources: &mut Sources<'a>) -> Result<Option<String>, ScenarioError> {
    let Some(preset) = root.get("path").and_then(|path| path.get("preset")) else { return Ok(None) };
    let Value::Text(name) = preset.value.clone() else { return Ok(None) };
    let at = preset.text_span();
    let found = name.rsplit_once('-').and_then(|(base, direction)| {
        let (_, hops) = DIRECTIONS.iter().find(|(known, _)| *known == direction)?;
        let (file, text) = path_preset_texts().find(|(file, _)| name_of(file) == base)?;
        Some((hops, file, text))
    });
    let Some(([forward, reverse], file, text)) = found else {
        let all = path_presets();
        let names: Vec<&str> = all.iter().map(|preset| preset.name.as_str()).collect();
        let error = sources.error(&at, format!("there is no path preset `{name}`"));
        return Err(error.help(suggestion(&name, &names)));
    };
    let source = sources.add(format!("scenarios/{file}"), text, format!("of the path preset {name}"));
    let document = Node::document(sources, source)?;
    let mut merged = Entries::new();
    for (key, hop) in [("forward", forward), ("reverse", reverse)] {
        if let Some(hop) = document.get(hop) {
            merged.insert(key.to_owned(), (at, hop.clone()));
        }
    }
    let path = root.make_table(at).get_mut("path").expect("it has a preset");
    let mut own = std::mem::take(path.1.make_table(at));
    keep_from_layer(&mut own, at.source());
    overlay(&mut merged, own);
    path.1.value = Value::Table(merged);
    let PresetFile { title, source, .. } = parse_header(file, text)?;
    Ok(Some(format!("path {name}: {title}; {source}")))
}

fn parse_header(file: &str, text: &str) -> Result<PresetFile, ScenarioError> {
    toml::from_str(text).map_err(|error| ScenarioError::of(file, text, error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Changes, Origin, Scenario, load};
    use paceline::Registry;
    use paceline_units::{DataSize, Time, TimeDelta};

    fn loaded(path: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
        let text = format!(
            "id = \"a/b\"\ntitle = \"A call\"\nduration = \"60 s\"\n{path}\n[[flow]]\nid = \"call\"\ncontroller = \"gcc-2016\"\n"
        );
        let settings = settings.iter().map(|s| s.parse().unwrap()).collect();
        load(&Origin::from_text("a.toml", text), &Changes { settings, ..Changes::default() }, &Registry::standard())
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
    fn every_preset_runs_in_both_directions() {
        let all = path_presets();
        assert!(all.len() >= 20, "{}", all.len());
        for PathPreset { name, source, .. } in all {
            let scenario = loaded(&format!("path = {{ preset = \"{name}\" }}"), &[]).unwrap();
            let [forward, reverse] = hops(&scenario);
            // Uplinks are slower.
            assert_eq!(forward.2 < reverse.2, name.ends_with("-up"), "{name}: {forward:?} {reverse:?}");
            assert!(scenario.notes.iter().any(|note| note.contains(&name) && note.contains(&source)), "{name}");
        }
    }

    #[test]
    fn keys_beside_a_preset_replace_its_values() {
        let ms = TimeDelta::from_millis;
        let path = "[path]\npreset = \"adsl-up\"\n[path.forward]\ncapacity = \"2 Mbps\"\n";
        let [forward, reverse] = hops(&loaded(path, &[]).unwrap());
        assert_eq!((forward, reverse.0, reverse.2), ((ms(20), DataSize::from_bytes(1500), 2.0), ms(20), 12.0));
        // A preset by --set replaces what the file says of the path, and later --set values replace those of the preset.
        let settings = ["path.forward.mtu=1000 B", "path.preset=vpn-transcontinental-down", "path.reverse.delay=1 ms"];
        let [forward, reverse] = hops(&loaded(path, &settings).unwrap());
        assert_eq!(forward, (ms(90), DataSize::from_bytes(1400), 50.0), "the mtu before it is gone, too");
        assert_eq!(reverse, (ms(1), DataSize::from_bytes(1400), 20.0));
    }

    #[test]
    fn an_unknown_preset_is_an_error_with_a_hint() {
        let error = loaded("path = { preset = \"lte-driv-up\" }", &[]).unwrap_err();
        assert_eq!(error.offending(), Some("\"lte-driv-up\""));
        assert!(error.hint().unwrap().contains("did you mean `lte-drive-up`?"), "{:?}", error.hint());
        for name in ["adsl", "adsl-sideways", "-up"] {
            assert!(loaded(&format!("path = {{ preset = \"{name}\" }}"), &[]).is_err(), "{name}");
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
}
