//! Streams and their sources.

use super::{Checked, FILES, FPS, Resolver, SOURCE_MAX, SOURCE_MIN, START_RATE, get};
use crate::plan::{SourcePlan, StreamPlan};
use crate::scenario::file::{Flow, Placed, SourceTable};
use crate::scenario::problem::{Problem, suggestion};
use paceline_flow::MediaKind;
use paceline_flow::source::{
    Audio, AudioConfig, Encoder, EncoderConfig, FrameTrace, FrameTraceConfig, Ideal, IdealConfig, Ladder, SourceError,
    ladder_rung, parse_frame_sizes,
};
use paceline_units::{Rate, Streams, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Resolver<'_> {
    pub(super) fn streams(&mut self, place: &Placed<Flow>) -> Checked<Vec<StreamPlan>> {
        let flow = place.get();
        if let Some(short) = flow.encoder.as_ref().or(flow.audio.as_ref()).filter(|_| !flow.stream.is_empty()) {
            let problem = self.complain(short, "a flow says its streams in short or at length, not both");
            return Err(problem.help("move it into a [[flow.stream]]"));
        }
        let mut streams: Vec<StreamPlan> = Vec::new();
        if flow.stream.is_empty() {
            let empty = SourceTable::default();
            let table = flow.encoder.as_ref().map_or(&empty, |e| e.get());
            streams.push(self.stream("video", 1.0, table, flow.encoder.as_ref(), "encoder")?);
            if let Some(audio) = &flow.audio {
                streams.push(self.stream("audio", 1.0, audio.get(), Some(audio), "audio")?);
            }
        }
        for stream in &flow.stream {
            let s = stream.get();
            let priority = s.priority.as_ref().map_or(1.0, |p| *p.get());
            if let Some(place) = s.priority.as_ref().filter(|p| !(p.get().is_finite() && *p.get() > 0.0)) {
                return Err(self.complain(place, "a priority is a number above 0").help("1 is the usual weight"));
            }
            self.name(&s.id)?;
            if streams.iter().any(|other| other.id == *s.id.get()) {
                let problem = self.complain(&s.id, format!("two streams are called `{}`", s.id.get()));
                return Err(problem.help("give each a name of its own"));
            }
            streams.push(self.stream(s.id.get(), priority, s.encoder.get(), Some(&s.encoder), "encoder")?);
        }
        if streams.len() > 8 {
            return Err(self.complain(&flow.id, "a flow has at most 8 streams").help("make two flows of it"));
        }
        Ok(streams)
    }

    pub(super) fn stream(
        &mut self,
        id: &str,
        priority: f64,
        table: &SourceTable,
        place: Option<&Placed<SourceTable>>,
        default: &str,
    ) -> Checked<StreamPlan> {
        let implied = if table.frames.is_some() { "frames" } else { default };
        let name = table.source.as_ref().map_or(implied, |s| s.get().as_str());
        let source = match name {
            "ideal" => SourcePlan::Ideal(ideal(table)),
            "encoder" => SourcePlan::Encoder(encoder(table)),
            "frames" => self.frames(table, place)?,
            "audio" => SourcePlan::Audio(audio(table)),
            _ => {
                let place = table.source.as_ref().expect("every default is known");
                let known: Vec<&str> = SourcePlan::NAMES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(place, format!("no source `{name}`"));
                return Err(problem.help(suggestion(name, &known)));
            }
        };
        if let Some((key, span)) = table.spans().into_iter().find(|(key, _)| !reads(name, key)) {
            let readers: Vec<_> = SourcePlan::NAMES.iter().filter(|(n, _)| reads(n, key)).collect();
            let list = readers.iter().map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            let message = format!("a source of `{name}` does not read `{key}`");
            let problem = Problem::at(&self.origin.name, self.text, span, message);
            return Err(problem.help(format!("take it out, or write source = one of {list}")));
        }
        try_source(&source).map_err(|error| {
            let (key, message) = complaint_of(error);
            let written = table.spans().into_iter().find(|(k, _)| *k == key).map(|(_, span)| span);
            let problem = match written.or_else(|| place.map(Placed::span)) {
                Some(span) => Problem::at(&self.origin.name, self.text, span, message),
                None => Problem::of(&self.origin.name, self.text, message),
            };
            problem.help(match key {
                "fps" => "30 is usual",
                "min" | "max" => "`min` and `max` bound the encoded media; if absent they are 50 kbps and 2 Mbps",
                _ => "leave the key out for its default; `paceline schema` says what each is",
            })
        })?;
        let kind = if matches!(source, SourcePlan::Audio(_)) { MediaKind::Audio } else { MediaKind::Video };
        Ok(StreamPlan { id: id.to_owned(), kind, priority, source })
    }

    pub(super) fn frames(&mut self, table: &SourceTable, place: Option<&Placed<SourceTable>>) -> Checked<SourcePlan> {
        let Some(folder) = &table.frames else {
            let message = "a source of `frames` needs the folder of recorded frame sizes";
            let problem = match (&table.source, place) {
                (Some(place), _) => self.complain(place, message),
                (None, Some(place)) => self.complain(place, message),
                (None, None) => Problem::of(&self.origin.name, self.text, message),
            };
            return Err(problem.help("add frames = \"folder\""));
        };
        let files = self.origin.read_folder(folder.get()).map_err(|e| self.complain(folder, e).help(FILES))?;
        /// Recordings by rate, for each resolution (as a number first, to find the highest).
        type Ladders = BTreeMap<(u32, String), Vec<(Rate, Vec<u32>)>>;
        let mut ladders = Ladders::new();
        for (name, text) in &files {
            let Some((resolution, rate)) = ladder_rung(name) else { continue };
            let sizes = parse_frame_sizes(text).map_err(|e| {
                let message = format!("{}/{name}, {e}", folder.get());
                self.complain(folder, message).help("a line is: index type X timestamp(s) size(bytes)")
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
                    let problem = self.complain(wanted, format!("no frame sizes of resolution `{}`", wanted.get()));
                    problem.help(suggestion(wanted.get(), &known))
                })?
            }
            None => ladders.pop_last().ok_or_else(|| {
                let problem = self.complain(folder, format!("{} holds no frame sizes", folder.get()));
                problem.help("files are called <content>_<resolution>_<kbps>.txt, such as talk_720p_1000.txt")
            })?,
        };
        let ((_, resolution), rungs) = rungs;
        self.notes.push(format!(
            "frame sizes: {} rungs of {resolution} from {}, each scaled to its nominal rate",
            rungs.len(),
            folder.get()
        ));
        let ladder = Ladder::new(rungs).map_err(|e| {
            let problem = self.complain(folder, format!("{}: {e}", folder.get()));
            problem.help("every file of one resolution holds the same frames, encoded at another rate")
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

/// Which keys a source reads; the others would be ignored, which nobody means.
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

/// A source's complaint in the words of the scenario: the key, and what is wrong with it.
fn complaint_of(error: SourceError) -> (&'static str, String) {
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

/// Builds the source once, to hear its complaint while there is still a place to point at.
fn try_source(source: &SourcePlan) -> Result<(), SourceError> {
    let random = Streams::new(0).stream("trial");
    match source.clone() {
        SourcePlan::Ideal(c) => Ideal::new(c, Time::ZERO).map(|_| ()),
        SourcePlan::Encoder(c) => Encoder::new(c, Time::ZERO, random).map(|_| ()),
        SourcePlan::Frames(c, ladder) => FrameTrace::new(c, ladder, Time::ZERO).map(|_| ()),
        SourcePlan::Audio(c) => Audio::new(c, Time::ZERO).map(|_| ()),
    }
}
