// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes sweep results as SVG files: contour maps over two numeric keys, lines over one numeric key with a colour per
//! controller, and bars for constants that are varied one at a time.

use crate::report::error::ReportError;
use crate::report::figure::{Axis, Figure, Panel, Role, Series, SeriesKind, Subject};
use crate::report::svg::contour::{Map, Scale, Sign, contour};
use crate::report::svg::tornado::{Bar, Tornado, tornado};
use crate::report::svg::{FIGURES_FOLDER, draw, write_all};
use crate::results::{Axis as SweepAxis, Measure, Point, SweepResult};
use paceline_netsim::records::{MetricCatalogue, MetricKind};
use std::path::{Path, PathBuf};

/// Name and SVG document of a figure.
pub type Picture = (String, String);

/// Writes the figures of a result into the figure folder of `dir` and returns the files.
pub fn write(result: &SweepResult, dir: &Path, metrics: MetricCatalogue) -> Result<Vec<PathBuf>, ReportError> {
    let pictures = pictures(result, metrics);
    if pictures.is_empty() { Ok(Vec::new()) } else { write_all(&dir.join(FIGURES_FOLDER), pictures.into_iter()) }
}

pub fn pictures(result: &SweepResult, metrics: MetricCatalogue) -> Vec<Picture> {
    let mut pictures = maps(result, metrics);
    pictures.extend(lines(result, metrics));
    pictures.extend(tornadoes(result, metrics));
    pictures
}

/// Returns maps of the sum and of each measure if there are two numeric axes.
fn maps(result: &SweepResult, metrics: MetricCatalogue) -> Vec<Picture> {
    let [x, y] = &result.axes[..] else { return Vec::new() };
    let Some((x, y)) = scale(x).zip(scale(y)) else { return Vec::new() };
    let map = |title: String, value: &dyn Fn(&Point) -> Option<f64>, marks: Vec<_>| {
        let values = result.points.iter().map(|point| value(point).unwrap_or(f64::NAN)).collect();
        contour(&Map { title, x: x.clone(), y: y.clone(), values, marks })
    };
    let mut pictures = Vec::new();
    if let Some(best) = &result.best {
        let mut marks: Vec<(f64, f64, String, Sign)> = Vec::new();
        let largest = number(&best.at[0]).zip(number(&best.at[1]));
        marks.extend(largest.map(|(x, y)| (x, y, "largest".to_owned(), Sign::Disc)));
        // The published point may lie outside the map.
        if let Some([at_x, at_y]) = result.published_at.as_deref()
            && x.contains(*at_x)
            && y.contains(*at_y)
        {
            marks.push((*at_x, *at_y, "published".to_owned(), Sign::Cross));
        }
        let each = if result.normalised { ", each from 0 to 1" } else { "" };
        pictures.push((result.id.clone(), map(format!("sum of the measures{each}"), &|point| point.sum, marks)));
    }
    for (index, measure) in result.measures.iter().enumerate() {
        let value = move |point: &Point| point.values[index].map(|summary| summary.mean);
        let unit = unit(measure, metrics);
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let title = format!("{}: {}{unit}", measure.name, measure.metric);
        pictures.push((format!("{}-{}", result.id, slug(&measure.name)), map(title, &value, Vec::new())));
    }
    pictures
}

/// Returns the unit of a measure; empty for a plain number.
fn unit(measure: &Measure, metrics: MetricCatalogue) -> &'static str {
    metrics.get(&measure.metric).map_or("", |metric| metric.kind.unit())
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

/// Returns the values of an axis with one key if they are increasing numbers.
fn scale(axis: &SweepAxis) -> Option<Scale> {
    let values = (0..axis.count()).map(|place| number(&axis.at(place)[0])).collect::<Option<Vec<f64>>>()?;
    let rises = values.len() > 1 && values.windows(2).all(|pair| pair[0] < pair[1]);
    let name = axis.keys[0].rsplit('.').next().unwrap_or_default().to_owned();
    (axis.keys.len() == 1 && rises).then_some(Scale { name, values })
}

/// Draws each measure over the last axis if it is numeric and all axes before it are controllers.
fn lines(result: &SweepResult, metrics: MetricCatalogue) -> Option<Picture> {
    let (last, before) = result.axes.split_last()?;
    let scale = scale(last)?;
    if before.iter().any(|axis| axis.keys != ["controller"]) {
        return None;
    }
    let log = scale.is_logarithmic();
    let across = |x: f64| if log { libm::log10(x) } else { x };
    let label = if log { format!("log10 {}", scale.name) } else { scale.name.clone() };
    let ends = (across(scale.values[0]), across(*scale.values.last()?));
    let subject = |block: &[Point]| {
        let name = block[0].at[..before.len()].iter().filter_map(toml::Value::as_str).next().unwrap_or_default();
        let [run, flow, controller, label, kind] = [""; 5].map(|_| name.to_owned());
        Subject { run, seed: 0, flow, controller, label, kind, traffic: false }
    };
    let blocks: Vec<&[Point]> = result.points.chunks(scale.values.len()).collect();
    let panel = |(index, measure): (usize, &Measure)| {
        let mut series = Vec::new();
        let kind = metrics.get(&measure.metric).map_or(MetricKind::Number, |metric| metric.kind);
        let least = if kind == MetricKind::Number { f64::NEG_INFINITY } else { 0.0 };
        for (subject, block) in blocks.iter().enumerate() {
            let mut add = |id: &str, label: &str, role: Role, sign: f64| {
                let mut line = Series::new(id, label, subject, role, SeriesKind::Line);
                for (x, point) in scale.values.iter().zip(*block) {
                    let value =
                        point.values[index].map_or(f64::NAN, |s| (s.mean + sign * s.ci95).max(least.min(s.mean)));
                    line.push(across(*x), value);
                }
                if line.y.iter().any(|y| y.is_finite()) {
                    series.push(line);
                }
            };
            add("mean", "mean", Role::Main, 0.0);
            if result.repeats > 1 {
                add("+interval", "95 % interval", Role::Second, 1.0);
                add("−interval", "95 % interval", Role::Second, -1.0);
            }
        }
        Panel {
            id: format!("measure-{index}"),
            title: format!("{}: {}", measure.name, measure.metric),
            caption: String::new(),
            x: Axis { label: label.clone(), unit: String::new(), range: Some(ends), least: None },
            y: Axis::new(&measure.metric, unit(measure, metrics)),
            series,
        }
    };
    let figure = Figure {
        id: result.id.clone(),
        scenario: result.id.clone(),
        title: result.id.clone(),
        subjects: blocks.iter().map(|block| subject(block)).collect(),
        panels: result.measures.iter().enumerate().map(panel).collect(),
    };
    Some((result.id.clone(), draw(&figure)))
}

/// Draws the bars of each controller, with one panel per measure.
fn tornadoes(result: &SweepResult, metrics: MetricCatalogue) -> Vec<Picture> {
    let mut controllers: Vec<Option<&str>> = result.swings.iter().map(|swing| swing.controller.as_deref()).collect();
    controllers.dedup();
    let picture = |controller: &Option<&str>| {
        let swings = result.swings.iter().filter(|swing| swing.controller.as_deref() == *controller);
        let panel = |(index, measure): (usize, &Measure)| {
            let bars = swings.clone().map(|swing| {
                let [low, base, high] = swing.values;
                let name = swing.key.rsplit('.').next().unwrap_or_default();
                let changes = swing.changes[index].map(|change| change.map(|change| (change.mean, change.ci95)));
                Bar { name: format!("{name} {base}: {low} to {high}"), changes }
            });
            Tornado {
                title: format!("{}: {}", measure.name, measure.metric),
                unit: unit(measure, metrics).to_owned(),
                bars: bars.collect(),
            }
        };
        let panels: Vec<Tornado> = result.measures.iter().enumerate().map(panel).collect();
        let name = match controller {
            Some(controller) if controllers.len() > 1 => format!("{}-{controller}", result.id),
            _ => result.id.clone(),
        };
        (name, tornado(&panels))
    };
    controllers.iter().map(picture).collect()
}

fn slug(name: &str) -> String {
    name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
