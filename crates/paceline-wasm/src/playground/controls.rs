// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls of the page: their positions for a text, and the text after a change. The text is the only state.

use crate::playground::problem::Problem;
use paceline::Registry;
use paceline_lab::registries;
use paceline_netsim::flow::parameter::QueueLimit;
use paceline_netsim::link::LossModel;
use paceline_netsim::plan::{FlowPlan, HopPlan, Plan};
use paceline_scenario::{Changes, Origin, Override, edited, load};
use paceline_units::{Rate, Time, TimeDelta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A scenario file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Text {
    /// Name of the file, for errors.
    pub name: String,
    /// Its content.
    pub text: String,
    /// The files that it refers to, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Text {
    /// Returns the origin of the scenario.
    pub fn origin(&self) -> Origin {
        Origin::from_text(&self.name, &self.text).with_files(self.files.clone())
    }
}

/// The positions of the controls. A control that the text has no single value for is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Controls {
    /// Id of the scenario.
    pub id: String,
    /// Title of the scenario.
    pub title: String,
    /// Duration, s.
    pub duration_s: f64,
    /// The controller of all media flows; none if they differ.
    pub controller: Option<String>,
    /// The controllers of the media flows.
    pub controllers: Vec<String>,
    /// Key of the bottleneck, such as `path.forward`; none if the text has no table for it.
    pub link: Option<String>,
    /// Capacity over time: s and bit/s; none for an unlimited one. Means of `STEPS` intervals if it has more steps.
    pub capacity: Option<Vec<(f64, f64)>>,
    /// Propagation delay of the bottleneck, ms; none if it changes.
    pub delay_ms: Option<f64>,
    /// Queue of the bottleneck.
    pub queue: Queue,
    /// Independent losses, per cent; none for another model or losses that change.
    pub loss_percent: Option<f64>,
    /// Lowest and highest rate of the encoder, bit/s; none if the source has no such keys.
    pub encoder: Option<(f64, f64)>,
}

/// The queue of the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Discipline.
    pub discipline: &'static str,
    /// Its limit, in this unit.
    pub limit: f64,
    /// `ms`, `KB` or `packets`.
    pub unit: &'static str,
}

/// A change of one control.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Duration, s.
    Duration(f64),
    /// The controller of every media flow, with its own defaults.
    Controller(String),
    /// Capacity from the first of these times to the end, s and bit/s; what was before and after stays.
    Draw(Vec<(f64, f64)>, f64),
    /// The capacity of another text.
    CapacityOf(String),
    /// Propagation delay, ms.
    DelayMs(f64),
    /// Queue discipline, with its own defaults.
    Discipline(String),
    /// Limit of the queue, in the unit that it has.
    Limit(f64),
    /// Independent losses, per cent.
    LossPercent(f64),
    /// Lowest rate of the encoder, bit/s.
    EncoderMin(f64),
    /// Highest rate of the encoder, bit/s.
    EncoderMax(f64),
}

/// Returns the positions of the controls.
///
/// # Errors
/// The text is wrong.
pub fn read(text: &Text, registry: &Registry) -> Result<Controls, Problem> {
    let scenario = load(&text.origin(), &Changes::default(), registries(registry))?;
    let plan = &scenario.plan;
    let hop = &plan.hops[plan.bottleneck];
    let file: toml::Table = toml::from_str(&text.text).unwrap_or_default();
    let media: Vec<&FlowPlan> = plan.flows.iter().filter(|flow| flow.media().is_some()).collect();
    let mut controllers: Vec<String> = media.iter().map(|flow| flow.control().to_owned()).collect();
    controllers.dedup();
    let (limit, unit) = match hop.queue.limit {
        QueueLimit::DrainTime(time) => (time.as_millis_f64(), "ms"),
        QueueLimit::Bytes(size) => (size.as_bytes() as f64 / 1000.0, "KB"),
        QueueLimit::Packets(count) => (f64::from(count), "packets"),
    };
    let loss = match hop.loss.points() {
        [(_, LossModel::Bernoulli(loss))] => Some(loss.get() * 100.0),
        _ => None,
    };
    let encoder = encoders(&file).first().and_then(|(_, id)| {
        let is_named = |flow: &&&FlowPlan| flow.id == *id || flow.group.as_deref() == Some(id);
        let source = &media.iter().find(is_named)?.media()?.streams.first()?.source;
        let has = |name: &str| source.entry.parameters.iter().any(|parameter| parameter.name == name);
        let (min, max) = source.range();
        (has("min") && has("max")).then(|| (min.as_bps_f64(), max.as_bps_f64()))
    });
    Ok(Controls {
        id: plan.id.clone(),
        title: plan.title.clone(),
        duration_s: plan.duration.as_secs_f64(),
        controller: (controllers.len() == 1).then(|| controllers[0].clone()),
        controllers,
        link: key_in(&file, plan),
        capacity: curve(hop, plan.duration),
        delay_ms: (hop.delay.points().len() == 1).then(|| hop.delay.points()[0].1.as_millis_f64()),
        queue: Queue { discipline: hop.queue.name(), limit, unit },
        loss_percent: loss,
        encoder,
    })
}

/// Returns the text after a change; comments stay.
///
/// # Errors
/// The text is wrong before or after it.
pub fn edit(text: &Text, change: &Change, registry: &Registry) -> Result<String, Problem> {
    let controls = read(text, registry)?;
    let file: toml::Table = toml::from_str(&text.text).unwrap_or_default();
    let link =
        || controls.link.clone().ok_or_else(|| Problem::from("the text has no table of the bottleneck".to_owned()));
    let encoder = |key: &str, bps: f64| -> Vec<String> {
        encoders(&file).into_iter().map(|(index, _)| format!("flow.{index}.encoder.{key}={}", rate(bps))).collect()
    };
    let settings: Vec<String> = match change {
        Change::Duration(seconds) => vec![format!("duration={} s", decimals(*seconds, 3))],
        Change::Controller(name) => {
            let of_flow = |index: usize| [format!("flow.{index}.controller={name}"), format!("flow.{index}.config=")];
            flows(&file).filter(|(_, flow)| is_controlled(flow)).flat_map(|(index, _)| of_flow(index)).collect()
        }
        Change::Draw(points, end) => {
            let duration = controls.duration_s;
            let steps = drawn(controls.capacity.unwrap_or_default(), points, *end, duration)?;
            vec![format!("{}.capacity={}", link()?, capacity(&steps))]
        }
        Change::CapacityOf(other) => {
            let other: toml::Table = toml::from_str(other).unwrap_or_default();
            let value = value_at(&other, &link()?, "capacity").map(ToString::to_string).unwrap_or_default();
            vec![format!("{}.capacity={value}", link()?)]
        }
        Change::DelayMs(ms) => vec![format!("{}.delay={} ms", link()?, decimals(*ms, 3))],
        Change::Discipline(name) => vec![format!("{}.queue={{ discipline = \"{name}\" }}", link()?)],
        Change::Limit(limit) => {
            vec![format!("{}.queue.limit={} {}", link()?, decimals(*limit, 3), controls.queue.unit)]
        }
        Change::LossPercent(percent) => vec![format!("{}.loss={} %", link()?, decimals(*percent, 3))],
        Change::EncoderMin(bps) => encoder("min", *bps),
        Change::EncoderMax(bps) => encoder("max", *bps),
    };
    let settings: Result<Vec<Override>, String> = settings.iter().map(|setting| setting.parse()).collect();
    Ok(edited(&text.origin(), &settings?, registry)?)
}

/// Steps of a capacity that are drawn at most.
const STEPS: i64 = 500;

/// Returns the capacity of a hop over a run.
fn curve(hop: &HopPlan, duration: TimeDelta) -> Option<Vec<(f64, f64)>> {
    let capacity = hop.capacity.as_ref()?;
    let interval = TimeDelta::from_nanos((duration.as_nanos() / STEPS).max(1));
    let mut steps: Vec<_> = capacity.segments(Time::ZERO + duration, interval).take(STEPS as usize + 2).collect();
    if steps.len() > STEPS as usize + 1 {
        // Of a week of short steps, a part of each interval: the page waits for this.
        let part = interval.min(TimeDelta::from_secs(30));
        let of = |start: Time| (start, Rate::from_size_and_time(capacity.volume(start, start + part), part));
        steps = (0..STEPS).map(|n| of(Time::ZERO + interval * n)).collect();
    }
    steps.dedup_by_key(|(_, rate)| *rate);
    Some(steps.into_iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps_f64())).collect())
}

/// Returns steps with these points in place of those from the first point to `end`, in ms.
fn drawn(
    mut steps: Vec<(f64, f64)>,
    points: &[(f64, f64)],
    end: f64,
    duration: f64,
) -> Result<Vec<(f64, f64)>, Problem> {
    let is_right = |&(at, rate): &(f64, f64)| (0.0..end).contains(&at) && (0.0..=1e12).contains(&rate);
    if points.is_empty() || end > duration || !points.iter().all(is_right) || !points.is_sorted_by(|a, b| a.0 < b.0) {
        let message =
            format!("a drawn capacity begins before it ends, from 0 to {duration} s, with rates of at least 0");
        return Err(message.into());
    }
    if steps.is_empty() {
        steps.push((0.0, points[0].1));
    }
    let resumed = steps.iter().rev().find(|(at, _)| *at <= end).map(|(_, rate)| (end, *rate));
    let before = steps.iter().filter(|(at, _)| *at < points[0].0);
    let after = steps.iter().filter(|(at, _)| *at > end);
    let all = before.chain(points).copied().chain(resumed.filter(|_| end < duration)).chain(after.copied());
    let mut all: Vec<(f64, f64)> = all.map(|(at, rate)| ((at * 1e3).round() / 1e3, rate)).collect();
    // Of two steps in one ms the later one holds.
    all.dedup_by(|next, last| {
        next.0 == last.0 && {
            last.1 = next.1;
            true
        }
    });
    all.dedup_by(|next, last| next.1 == last.1);
    Ok(all)
}

/// Returns the key of the bottleneck in the text: that of its way, or that of one of the hops of the way.
fn key_in(file: &toml::Table, plan: &Plan) -> Option<String> {
    let is_forward = plan.bottleneck < plan.forward_hops;
    let (way, first, count) = match is_forward {
        true => ("forward", 0, plan.forward_hops),
        false => ("reverse", plan.forward_hops, plan.hops.len() - plan.forward_hops),
    };
    let has_hops = file.get("path").and_then(|path| path.get(way)).and_then(|way| way.get("hops")).is_some();
    match has_hops {
        true => Some(format!("path.{way}.hops.{}", plan.bottleneck - first)),
        false => (count == 1).then(|| format!("path.{way}")),
    }
}

fn value_at<'a>(file: &'a toml::Table, table: &str, key: &str) -> Option<&'a toml::Value> {
    let mut parts = table.split('.').chain([key]);
    let first = file.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match part.parse::<usize>() {
        Ok(index) => value.get(index),
        Err(_) => value.get(part),
    })
}

/// Returns the tables of flows with their numbers.
fn flows(file: &toml::Table) -> impl Iterator<Item = (usize, &toml::Value)> {
    file.get("flow").and_then(toml::Value::as_array).into_iter().flatten().enumerate()
}

/// Returns whether the flow is media that a controller is chosen for, as `--controller` does.
fn is_controlled(flow: &toml::Value) -> bool {
    let is_media = flow.get("kind").and_then(toml::Value::as_str).is_none_or(|kind| kind == "media");
    is_media && !flow.get("cross_traffic").and_then(toml::Value::as_bool).unwrap_or(false)
}

/// Returns number and id of each flow with the short form of its video.
fn encoders(file: &toml::Table) -> Vec<(usize, &str)> {
    let short = flows(file).filter(|(_, flow)| is_controlled(flow) && flow.get("stream").is_none());
    short.filter_map(|(index, flow)| Some((index, flow.get("id")?.as_str()?))).collect()
}

/// Formats a capacity as in scenarios.
fn capacity(steps: &[(f64, f64)]) -> String {
    match steps {
        [(_, only)] => rate(*only),
        steps => {
            let step = |(at, bps): &(f64, f64)| format!("[\"{} s\", \"{}\"]", decimals(*at, 3), rate(*bps));
            format!("[{}]", steps.iter().map(step).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a rate as in scenarios.
fn rate(bps: f64) -> String {
    if bps >= 1e6 { format!("{} Mbps", decimals(bps / 1e6, 6)) } else { format!("{} kbps", decimals(bps / 1e3, 3)) }
}

/// Formats a number with at most so many decimals.
fn decimals(value: f64, most: usize) -> String {
    let text = format!("{value:.most$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playground::start::FIRST;

    fn first() -> Text {
        Text { name: "call.toml".to_owned(), text: FIRST.to_owned(), ..Text::default() }
    }

    fn after(changes: &[Change]) -> (String, Controls) {
        let registry = Registry::standard();
        let mut text = first();
        for change in changes {
            text.text = edit(&text, change, &registry).unwrap();
        }
        let controls = read(&text, &registry).unwrap();
        (text.text, controls)
    }

    #[test]
    fn each_change_is_read_back_from_the_text() {
        let steps = vec![(0.0, 2e6), (30.5, 640e3)];
        let (text, controls) = after(&[
            Change::Duration(120.0),
            Change::Controller("nada".to_owned()),
            Change::Draw(steps.clone(), 120.0),
            Change::DelayMs(40.0),
            Change::Discipline("codel".to_owned()),
            Change::LossPercent(1.5),
            Change::EncoderMin(100e3),
            Change::EncoderMax(3e6),
        ]);
        assert_eq!((controls.duration_s, controls.controller.as_deref()), (120.0, Some("nada")));
        assert_eq!((controls.capacity, controls.delay_ms, controls.loss_percent), (Some(steps), Some(40.0), Some(1.5)));
        assert_eq!((controls.queue.discipline, controls.encoder), ("codel", Some((100e3, 3e6))));
        assert!(text.contains("capacity = [[\"0 s\", \"2 Mbps\"], [\"30.5 s\", \"640 kbps\"]]"), "{text}");
        assert!(text.contains("# From 0, 50"), "comments stay: {text}");
        let (text, controls) = after(&[Change::Draw(vec![(0.0, 500e3)], 200.0), Change::Limit(150.0)]);
        assert!(text.contains("capacity = \"500 kbps\"") && controls.queue.limit == 150.0, "{text}");
        assert_eq!(controls.capacity, Some(vec![(0.0, 500e3)]));
    }

    #[test]
    fn a_drawn_capacity_replaces_its_span_alone() {
        let (text, controls) = after(&[Change::Draw(vec![(20.0, 3e6), (60.0, 0.0)], 110.0)]);
        let steps = [(0.0, 1e6), (20.0, 3e6), (60.0, 0.0), (110.0, 500e3), (150.0, 1e6)];
        assert_eq!(controls.capacity.as_deref(), Some(&steps[..]), "{text}");
        let (text, controls) = after(&[Change::Draw(vec![(20.0, 3e6)], 110.0), Change::CapacityOf(FIRST.to_owned())]);
        assert_eq!(controls, read(&first(), &Registry::standard()).unwrap(), "{text}");
        // The rate that resumes, and steps of one ms.
        let steps = vec![(0.0, 1e6), (50.0, 2e6)];
        let draw = |points: &[(f64, f64)], end| drawn(steps.clone(), points, end, 100.0);
        assert_eq!(
            draw(&[(10.0, 5e5), (10.0001, 7e5)], 20.0).unwrap(),
            [(0.0, 1e6), (10.0, 7e5), (20.0, 1e6), (50.0, 2e6)]
        );
        assert_eq!(draw(&[(50.0, 1e6)], 100.0).unwrap(), [(0.0, 1e6)]);
        let wrong: [(&[(f64, f64)], f64); 7] = [
            (&[], 20.0),
            (&[(30.0, 1e6)], 20.0),
            (&[(0.0, -1.0)], 20.0),
            (&[(0.0, f64::NAN)], 20.0),
            (&[(0.0, 1e6)], 101.0),
            (&[(5.0, 1e6), (5.0, 2e6)], 20.0),
            (&[(0.0, 1e6)], f64::NAN),
        ];
        for (points, end) in wrong {
            assert!(draw(points, end).unwrap_err().message.contains("from 0 to 100 s"), "{points:?}");
        }
    }

    /// Recorded traces are one curve, which can be drawn over and reset.
    #[test]
    fn a_trace_of_many_steps_is_one_curve() {
        let registry = Registry::standard();
        let mut text = crate::playground::start::open("path:lte-drive-up", paceline_scenario::Catalogue).unwrap();
        text = text.replace("200 s", "3600 s");
        let text = Text { text, ..first() };
        let before = read(&text, &registry).unwrap();
        let steps = before.capacity.clone().unwrap();
        assert!((100..=STEPS as usize).contains(&steps.len()), "{}", steps.len());
        let edited = edit(&text, &Change::Draw(vec![(100.0, 7e6)], 200.0), &registry).unwrap();
        let after = read(&Text { text: edited.clone(), ..first() }, &registry).unwrap().capacity.unwrap();
        let at = |steps: &[(f64, f64)], time: f64| steps.iter().rev().find(|(at, _)| *at <= time).unwrap().1;
        assert_eq!(
            (at(&after, 150.0), at(&after, 99.0), at(&after, 300.0)),
            (7e6, at(&steps, 99.0), at(&steps, 300.0))
        );
        let reset = edit(&Text { text: edited, ..first() }, &Change::CapacityOf(text.text.clone()), &registry).unwrap();
        assert_eq!(read(&Text { text: reset, ..first() }, &registry).unwrap(), before);
    }

    #[test]
    fn a_wrong_text_is_an_error_with_its_place_and_a_hint() {
        let text = Text { text: FIRST.replace("gcc-2016", "gcc-2061"), ..first() };
        let error = read(&text, &Registry::standard()).unwrap_err();
        assert_eq!((error.line, error.offending.as_deref()), (Some(15), Some("\"gcc-2061\"")), "{error:?}");
        assert!(error.hint.unwrap().contains("did you mean `gcc-2016`"));
    }

    /// A shipped scenario is shown, with the controls that it has.
    #[test]
    fn every_scenario_and_preset_can_be_opened() {
        let registry = Registry::standard();
        let start = crate::playground::start::start(&registry);
        let mut with_capacity = 0;
        let entries: Vec<_> = start.groups.iter().flat_map(|(_, entries)| entries).collect();
        let all = paceline_scenario::Catalogue.ids().count() + paceline_scenario::path_presets().len();
        assert_eq!(entries.len(), all);
        assert!(
            start.groups.iter().all(|(title, of)| of[0].name.split('/').next() != Some(title)),
            "each folder has a title"
        );
        assert!(start.groups.iter().all(|(_, entries)| entries.len() < 45), "a group fits into view");
        for named in entries {
            let text = crate::playground::start::open(&named.name, paceline_scenario::Catalogue).unwrap();
            let controls = read(&Text { name: "call.toml".to_owned(), text, ..Text::default() }, &registry).unwrap();
            with_capacity += usize::from(controls.capacity.is_some());
            assert!(!named.summary.is_empty() && !controls.title.is_empty(), "{}", named.name);
        }
        assert!(all > 50 && with_capacity > all / 2, "{with_capacity} of {all}");
    }
}
