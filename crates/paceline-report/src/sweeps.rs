//! What a sweep came to as vector files: contour maps over two keys of numbers, lines over one of them (a colour for each
//! controller), bars where constants leave their base one at a time.

use crate::error::ReportError;
use crate::figure::{Axis, Figure, Kind, Panel, Role, Series, Subject};
use crate::svg::contour::{Map, Scale, Sign, contour};
use crate::svg::tornado::{Bar, Tornado, tornado};
use crate::svg::{FIGURES_FOLDER, draw, file_name};
use paceline_lab::metrics;
use paceline_lab::sweep::{Axis as SweepAxis, Measure, Point, SweepResult};
use std::fs;
use std::path::{Path, PathBuf};

/// A picture: its name, and its document.
pub type Picture = (String, String);

/// Draws what there is to draw into the folder of pictures of `dir`, and answers the files.
///
/// # Errors
/// A file cannot be written.
pub fn write(result: &SweepResult, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let into = dir.join(FIGURES_FOLDER);
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| ReportError::Io { action: "write", path, source }
    };
    let mut files = Vec::new();
    for (name, document) in pictures(result) {
        fs::create_dir_all(&into).map_err(failed(&into))?;
        let file = into.join(file_name(&name));
        fs::write(&file, document).map_err(failed(&file))?;
        files.push(file);
    }
    Ok(files)
}

/// Every picture of a result.
pub fn pictures(result: &SweepResult) -> Vec<Picture> {
    let mut pictures = maps(result);
    pictures.extend(lines(result));
    pictures.extend(tornadoes(result));
    pictures
}

/// A map of the sum, and of each measure, if there are two axes of numbers.
fn maps(result: &SweepResult) -> Vec<Picture> {
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
        // What was published need not be on the map.
        if let Some([at_x, at_y]) = result.published_at.as_deref()
            && x.holds(*at_x)
            && y.holds(*at_y)
        {
            marks.push((*at_x, *at_y, "published".to_owned(), Sign::Cross));
        }
        let each = if result.normalised { ", each from 0 to 1" } else { "" };
        pictures.push((result.id.clone(), map(format!("sum of the measures{each}"), &|point| point.sum, marks)));
    }
    for (index, measure) in result.measures.iter().enumerate() {
        let value = move |point: &Point| point.values[index].map(|summary| summary.mean);
        let unit = unit(measure);
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let title = format!("{}: {}{unit}", measure.name, measure.metric);
        pictures.push((format!("{}-{}", result.id, slug(&measure.name)), map(title, &value, Vec::new())));
    }
    pictures
}

/// The unit of a measure; empty for a plain number.
fn unit(measure: &Measure) -> &'static str {
    metrics::find(&measure.metric).map_or("", |metric| metric.kind.unit())
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

/// The values of an axis of one key, if they are numbers that rise.
fn scale(axis: &SweepAxis) -> Option<Scale> {
    let values = (0..axis.count()).map(|place| number(&axis.at(place)[0])).collect::<Option<Vec<f64>>>()?;
    let rises = values.len() > 1 && values.windows(2).all(|pair| pair[0] < pair[1]);
    let name = axis.keys[0].rsplit('.').next().unwrap_or_default().to_owned();
    (axis.keys.len() == 1 && rises).then_some(Scale { name, values })
}

/// Each measure over the last axis, if it is one of numbers, and all that is before it are controllers.
fn lines(result: &SweepResult) -> Option<Picture> {
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
        Subject { run, seed: 0, flow, controller, label, kind }
    };
    let blocks: Vec<&[Point]> = result.points.chunks(scale.values.len()).collect();
    let panel = |(index, measure): (usize, &Measure)| {
        let mut series = Vec::new();
        for (subject, block) in blocks.iter().enumerate() {
            let mut add = |id: &str, label: &str, role: Role, sign: f64| {
                let mut line = Series::new(id, label, subject, role, Kind::Line);
                for (x, point) in scale.values.iter().zip(*block) {
                    let value = point.values[index].map_or(f64::NAN, |s| s.mean + sign * s.ci95);
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
            x: Axis { label: label.clone(), unit: String::new(), range: Some(ends) },
            y: Axis::new(&measure.metric, unit(measure)),
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

/// Bars of each controller, a panel for each measure.
fn tornadoes(result: &SweepResult) -> Vec<Picture> {
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
                unit: unit(measure).to_owned(),
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

/// A name as a part of a file's.
fn slug(name: &str) -> String {
    name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
