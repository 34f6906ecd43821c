//! Streams and their sources.

use super::{Checked, FILES, FPS, Resolver, SOURCE_MAX, SOURCE_MIN, START_RATE, get, names};
use crate::error::suggestion;
use crate::file::{Flow, SourceTable};
use crate::text_span::{HasTextSpan, Table, TextSpan};
use paceline_flow::MediaKind;
use paceline_flow::source::{
    Audio, AudioConfig, Encoder, EncoderConfig, FrameTrace, FrameTraceConfig, Ideal, IdealConfig, Ladder, SourceError,
    ladder_rung, parse_frame_sizes,
};
use paceline_netsim::plan::{SourcePlan, StreamPlan};
use paceline_units::{RandomStreams, Rate, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Resolver<'_> {
    pub(super) fn streams(&mut self, flow: &Flow) -> Checked<Vec<StreamPlan>> {
        let media = flow.media.get();
        let mut streams: Vec<StreamPlan> = Vec::new();
        if media.stream.is_empty() {
            let none = Table::default();
            streams.push(self.stream("video", 1.0, media.encoder.as_ref().unwrap_or(&none), "encoder")?);
            if let Some(audio) = &media.audio {
                streams.push(self.stream("audio", 1.0, audio, "audio")?);
            }
        } else if let Some(short) = media.encoder.as_ref().or(media.audio.as_ref()) {
            let message = "a flow has either `encoder` and `audio` or [[flow.stream]], not both";
            return self.fail(short, message, "move it into a [[flow.stream]]");
        }
        for s in &media.stream {
            let priority = get(&s.priority, 1.0);
            if let Some(spanned) = s.priority.as_ref().filter(|_| !(priority.is_finite() && priority > 0.0)) {
                return self.fail(spanned, "priority must be above 0", "1 is the usual weight");
            }
            self.name(&s.id)?;
            if streams.iter().any(|other| other.id == *s.id.get()) {
                let message = format!("two streams have the id `{}`", s.id.get());
                return self.fail(&s.id, message, super::OWN_ID);
            }
            streams.push(self.stream(s.id.get(), priority, &s.encoder, "encoder")?);
        }
        if streams.len() > 8 {
            return self.fail(&flow.id, "a flow has at most 8 streams", "split it into two flows");
        }
        Ok(streams)
    }

    fn stream(&mut self, id: &str, priority: f64, spanned: &Table<SourceTable>, default: &str) -> Checked<StreamPlan> {
        let table = spanned.get();
        let implied = if table.frames.is_some() { "frames" } else { default };
        let name = table.source.as_ref().map_or(implied, |s| s.get().as_str());
        let source = match (name, &table.source) {
            ("ideal", _) => SourcePlan::Ideal(ideal(table)),
            ("encoder", _) => SourcePlan::Encoder(encoder(table)),
            ("frames", _) => self.frames(spanned)?,
            ("audio", _) => SourcePlan::Audio(audio(table)),
            (_, spanned) => {
                let spanned = spanned.as_ref().expect("every default is known");
                return self.unknown(spanned, "source", &names(&SourcePlan::NAMES));
            }
        };
        if let Some((key, text_span)) = spanned.first_key(|key| !reads(name, key)) {
            let readers = SourcePlan::NAMES.iter().filter(|(n, _)| reads(n, key));
            let list = readers.map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            let help = format!("leave it out, or write source = one of {list}");
            return self.fail(&text_span, format!("a source of `{name}` does not read `{key}`"), help);
        }
        try_source(&source).map_err(|error| {
            let (key, message) = scenario_message(error);
            let help = match key {
                "fps" => "30 is usual",
                "min" | "max" => "`min` and `max` bound the encoded media; if absent they are 50 kbps and 2 Mbps",
                _ => "leave the key out for its default; `paceline schema` describes each key",
            };
            self.error(&spanned.value(key).unwrap_or(spanned.text_span()), message).help(help)
        })?;
        let kind = if matches!(source, SourcePlan::Audio(_)) { MediaKind::Audio } else { MediaKind::Video };
        Ok(StreamPlan { id: id.to_owned(), kind, priority, source })
    }

    fn frames(&mut self, spanned: &Table<SourceTable>) -> Checked<SourcePlan> {
        let table = spanned.get();
        let Some(folder) = &table.frames else {
            let text_span: TextSpan = table.source.as_ref().map_or(spanned.text_span(), HasTextSpan::text_span);
            let message = "a source of `frames` needs the folder of recorded frame sizes";
            return self.fail(&text_span, message, "add frames = \"folder\"");
        };
        let files = self.origin.read_folder(folder.get()).map_err(|e| self.error(folder, e).help(FILES))?;
        /// Recordings by rate, for each resolution (as a number first, to find the highest).
        type Ladders = BTreeMap<(u32, String), Vec<(Rate, Vec<u32>)>>;
        let mut ladders = Ladders::new();
        for (name, text) in &files {
            let Some((resolution, rate)) = ladder_rung(name) else { continue };
            let sizes = parse_frame_sizes(text).map_err(|e| {
                let message = format!("{}/{name}, {e}", folder.get());
                self.error(folder, message).help("a line is: index type X timestamp(s) size(bytes)")
            })?;
            let lines: u32 = resolution.trim_end_matches('p').parse().unwrap_or(0);
            ladders.entry((lines, resolution.to_owned())).or_default().push((rate, sizes));
        }
        let known: Vec<String> = ladders.keys().map(|(_, r)| r.clone()).collect();
        let rungs = match &table.resolution {
            Some(wanted) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let found = ladders.into_iter().find(|((_, r), _)| r == wanted.get());
                found.ok_or_else(|| {
                    let message = format!("no frame sizes of resolution `{}`", wanted.get());
                    self.error(wanted, message).help(suggestion(wanted.get(), &known))
                })?
            }
            None => ladders.pop_last().ok_or_else(|| {
                let help = "files are called <content>_<resolution>_<kbps>.txt, such as talk_720p_1000.txt";
                self.error(folder, format!("{} holds no frame sizes", folder.get())).help(help)
            })?,
        };
        let ((_, resolution), rungs) = rungs;
        self.notes.push(format!(
            "frame sizes: {} rungs of {resolution} from {}, each scaled to its nominal rate",
            rungs.len(),
            folder.get()
        ));
        let ladder = Ladder::new(rungs).map_err(|e| {
            let help = "every file of one resolution must hold the same frames, encoded at another rate";
            self.error(folder, format!("{}: {e}", folder.get())).help(help)
        })?;
        let standard = FrameTraceConfig::default();
        let (min, max) = range(table);
        Ok(SourcePlan::Frames(
            FrameTraceConfig {
                fps: get(&table.fps, FPS),
                min,
                max,
                start: START_RATE.min(max).max(min),
                reaction_delay: get(&table.reaction_delay, standard.reaction_delay),
                ..standard
            },
            Arc::new(ladder),
        ))
    }
}

/// Returns whether a source reads a key. A key that it does not read is an error.
pub(crate) fn reads(source: &str, key: &str) -> bool {
    match source {
        "audio" => matches!(key, "source" | "rate"),
        "ideal" => matches!(key, "source" | "fps" | "min" | "max"),
        "frames" => {
            matches!(key, "source" | "fps" | "min" | "max" | "reaction_delay" | "frames" | "resolution")
        }
        _ => !matches!(key, "rate" | "frames" | "resolution"),
    }
}

/// Returns the scenario's key of a source's error, and the message with that key.
fn scenario_message(error: SourceError) -> (&'static str, String) {
    let key = match error.field {
        "burst_frames" => "key_frames",
        "burst_ratio" => "key_ratio",
        "size_scale" => "size_noise",
        "interval_scale" => "interval_noise",
        "key_frame_period" => "key_period",
        "start" => "min",
        field => field,
    };
    let expected = error.expected.replace("`burst_frames`", "`key_frames`");
    (key, format!("`{key}` is {}, expected {expected}", error.value))
}

fn range(table: &SourceTable) -> (Rate, Rate) {
    (get(&table.min, SOURCE_MIN), get(&table.max, SOURCE_MAX))
}

fn ideal(table: &SourceTable) -> IdealConfig {
    let (min, max) = range(table);
    IdealConfig { fps: get(&table.fps, FPS), min, max, start: START_RATE.min(max).max(min) }
}

fn encoder(table: &SourceTable) -> EncoderConfig {
    let standard = EncoderConfig::default();
    let (min, max) = range(table);
    EncoderConfig {
        fps: get(&table.fps, FPS),
        min,
        max,
        start: START_RATE.min(max).max(min),
        reaction_delay: get(&table.reaction_delay, standard.reaction_delay),
        burst_frames: get(&table.key_frames, standard.burst_frames),
        burst_ratio: get(&table.key_ratio, standard.burst_ratio),
        size_scale: get(&table.size_noise, standard.size_scale),
        interval_scale: get(&table.interval_noise, standard.interval_scale),
        key_frame_period: table.key_period.as_ref().map(|p| *p.get()),
        ..standard
    }
}

fn audio(table: &SourceTable) -> AudioConfig {
    let standard = AudioConfig::default();
    AudioConfig { rate: get(&table.rate, standard.rate), ..standard }
}

/// Builds the source once, so that its error gets a location in the scenario.
fn try_source(source: &SourcePlan) -> Result<(), SourceError> {
    let random = RandomStreams::new(0).stream("trial");
    match source.clone() {
        SourcePlan::Ideal(c) => Ideal::new(c, Time::ZERO).map(|_| ()),
        SourcePlan::Encoder(c) => Encoder::new(c, Time::ZERO, random).map(|_| ()),
        SourcePlan::Frames(c, ladder) => FrameTrace::new(c, ladder, Time::ZERO).map(|_| ()),
        SourcePlan::Audio(c) => Audio::new(c, Time::ZERO).map(|_| ()),
    }
}
