// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams and their sources.

use super::{Checked, Resolver, get};
use crate::error::suggestion;
use crate::file::{Flow, SourceTable, Stream};
use crate::forms::Timed;
use crate::preset::source_presets;
use crate::text_span::{HasTextSpan, Table};
use paceline_netsim::flow::source::{Configured, SOURCES, SetupHint, SourceEntry, SourceSetup};
use paceline_netsim::link::Schedule;
use paceline_netsim::parameter::RegistryEntry;
use paceline_netsim::plan::{SourcePlan, StreamPlan};
use paceline_units::{RandomStreams, Rate, Time};

impl Resolver<'_> {
    pub(super) fn streams(&mut self, flow: &Flow) -> Checked<Vec<StreamPlan>> {
        let (media, of) = (flow.media.get(), flow.id.get());
        let mut streams: Vec<StreamPlan> = Vec::new();
        if media.stream.is_empty() {
            let none = Table::default();
            streams.push(self.stream((of, "video"), media.encoder.as_ref().unwrap_or(&none), "encoder")?);
            if let Some(audio) = &media.audio {
                streams.push(self.stream((of, "audio"), audio, "audio")?);
            }
        } else if let Some(short) = media.encoder.as_ref().or(media.audio.as_ref()) {
            let message = "a flow has either `encoder` and `audio` or [[flow.stream]], not both";
            return self.fail(short, message, "move it into a [[flow.stream]]");
        }
        for s in &media.stream {
            let priority = self.priority(&s.priority)?;
            self.name(&s.id)?;
            if streams.iter().any(|other| other.id == *s.id.get()) {
                let message = format!("two streams have the id `{}`", s.id.get());
                return self.fail(&s.id, message, super::OWN_ID);
            }
            let plan = StreamPlan { priority, ..self.stream((of, s.id.get()), &s.encoder, "encoder")? };
            streams.push(self.schedule_stream(flow, s, plan)?);
        }
        if streams.len() > 8 {
            return self.fail(&flow.id, "a flow has at most 8 streams", "split it into two flows");
        }
        Ok(streams)
    }

    /// Returns a stream with its highest rate over time, and its end.
    fn schedule_stream(&mut self, flow: &Flow, stream: &Stream, plan: StreamPlan) -> Checked<StreamPlan> {
        let min = plan.source.range().0;
        let max = match &stream.max_rate {
            None => plan.max,
            Some(spanned) => self.schedule(spanned, spanned.get(), |resolver, rate| match *rate {
                rate if rate.is_zero() || rate >= min => Ok(rate),
                rate => {
                    let help = format!("write 0 bps to pause it, at least {min}, or lower the `min` of its encoder");
                    resolver.fail(spanned, format!("`max_rate` is {rate}, but the source needs {min}"), help)
                }
            })?,
        };
        let muted = match &stream.muted {
            None => plan.muted,
            Some(spanned) => self.schedule(spanned, &Timed::Schedule(spanned.get().clone()), |_, muted| Ok(*muted))?,
        };
        let start = get(&flow.start, Time::ZERO);
        if let Some(spanned) = stream.stop.as_ref().filter(|stop| *stop.get() <= start) {
            let message = format!("the stream `{}` stops before its flow starts", plan.id);
            return self.fail(spanned, message, format!("the flow starts at {start}"));
        }
        let (stop, suspends) = (get(&stream.stop, Time::MAX), stream.suspend.unwrap_or(false));
        Ok(StreamPlan { max, muted, stop, suspends, ..plan })
    }

    /// Returns a stream of weight 1 that lives as long as its flow. `key` is that of its table.
    fn stream(&mut self, (flow, id): (&str, &str), spanned: &Table<SourceTable>, key: &str) -> Checked<StreamPlan> {
        let table = spanned.get();
        let presets = source_presets();
        let presets: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
        let chosen = self.choose(table.source.as_ref(), &table.parameters, default_source(key), &presets)?;
        let values = self.values(&chosen, &table.parameters, &format!("flow `{flow}`"), |_, _, _, level| Ok(level))?;
        let entry = chosen.entry;
        let origin = self.origin;
        let read_folder = |folder: &str| origin.read_folder(folder);
        let mut setup = SourceSetup { values: &values, read_folder: &read_folder, notes: &mut self.notes };
        let Configured { config, lines } = (entry.configure)(&mut setup).map_err(|error| {
            let at = table.parameters.value(error.parameter).unwrap_or(spanned.text_span());
            let help = match error.hint {
                SetupHint::Text(text) => text.to_owned(),
                SetupHint::MissingFile => origin.lookup().to_owned(),
                SetupHint::Known(known) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    suggestion(values.text(error.parameter).unwrap_or_default(), &known)
                }
            };
            self.error(&at, error.message).help(help)
        })?;
        // Built once, so that an error gets a location in the scenario.
        config.build(Time::ZERO, RandomStreams::new(0).stream("trial")).map_err(|error| {
            let help = match error.field {
                "fps" => "30 is usual",
                "min" | "max" => "`min` and `max` bound the encoded media; if absent they are 50 kbps and 2 Mbps",
                _ => "leave the key out for its default; `paceline schema` describes each key",
            };
            self.error(&table.parameters.value(error.field).unwrap_or(spanned.text_span()), error.to_string())
                .help(help)
        })?;
        Ok(StreamPlan {
            id: id.to_owned(),
            kind: entry.kind,
            priority: 1.0,
            source: SourcePlan { entry, values: values.with_texts(Vec::new()), config, lines },
            max: Schedule::constant(Rate::MAX),
            muted: Schedule::constant(false),
            stop: Time::MAX,
            suspends: false,
        })
    }
}

/// Returns the source of a table without `source`, by the key of the table.
pub(crate) fn default_source(key: &str) -> &'static SourceEntry {
    SourceEntry::find(if key == "audio" { key } else { SOURCES[0].name }).expect("every default is a source")
}
