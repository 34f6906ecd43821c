// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls of the page: their positions for a text, and the text after a change. The text is the only state.

use crate::playground::problem::Problem;
use paceline::Registry;
use paceline_lab::registries;
use paceline_netsim::flow::parameter::QueueLimit;
use paceline_netsim::link::LossModel;
use paceline_netsim::plan::{FlowPlan, Plan};
use paceline_scenario::{Changes, Origin, Override, edited, load};
use serde::{Deserialize, Serialize};

/// A scenario file.
#[derive(Clone, Debug, Deserialize)]
pub struct Text {
    /// Name of the file, for errors.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl Text {
    /// Returns the origin of the scenario.
    pub fn origin(&self) -> Origin {
        Origin::from_text(&self.name, &self.text)
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
    /// Capacity over time: s and bit/s; none for an unlimited or a recorded one.
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
    /// Capacity over time: s and bit/s.
    Capacity(Vec<(f64, f64)>),
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
    let is_recorded =
        key_in(&file, plan).and_then(|key| value_at(&file, &key, "capacity")).is_some_and(toml::Value::is_table);
    let capacity = hop.capacity.as_ref().filter(|capacity| capacity.has_rates() && !is_recorded).map(|capacity| {
        let steps = capacity.steps(paceline_units::Time::ZERO + plan.duration, plan.duration);
        steps.into_iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps_f64())).collect()
    });
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
        capacity,
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
        Change::Capacity(steps) => vec![format!("{}.capacity={}", link()?, capacity(steps))],
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
        Text { name: "call.toml".to_owned(), text: FIRST.to_owned() }
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
            Change::Capacity(steps.clone()),
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
        let (text, controls) = after(&[Change::Capacity(vec![(0.0, 500e3)]), Change::Limit(150.0)]);
        assert!(text.contains("capacity = \"500 kbps\"") && controls.queue.limit == 150.0, "{text}");
        assert_eq!(controls.capacity, Some(vec![(0.0, 500e3)]));
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
        let (mut with_capacity, all) = (0, start.scenarios.len() + start.presets.len());
        for named in start.presets.iter().chain(&start.scenarios) {
            let text = crate::playground::start::open(&named.name, paceline_scenario::Catalogue).unwrap();
            let controls = read(&Text { name: "call.toml".to_owned(), text }, &registry).unwrap();
            with_capacity += usize::from(controls.capacity.is_some());
            assert!(!named.summary.is_empty() && !controls.title.is_empty(), "{}", named.name);
        }
        assert!(all > 50 && with_capacity > all / 2, "{with_capacity} of {all}");
    }
}
