// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the panels of each SVG figure: fixed groups for every scenario, and the figures of papers whose runs are stored.

use crate::report::figure::{Figure, Panel, Series, SeriesKind, Subject};
use crate::report::read::{Results, Run};
use serde::Deserialize;

pub const PAPERS: &str = include_str!("../../figures.toml");

/// The selection of runs and panels for a figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigure {
    /// Paper and figure, such as `mmsys16/fig13`.
    pub id: String,
    pub scenario: String,
    /// Cases of the scenario, each as `name=value`, combined with spaces. Empty: all runs.
    #[serde(default)]
    pub cases: Vec<String>,
    #[serde(default)]
    pub apart: bool,
    /// Ids of panels from top to bottom. `panel:series` selects one series of a panel.
    pub panels: Vec<String>,
    /// Flows. Empty: all flows.
    #[serde(default)]
    pub flows: Vec<String>,
    pub window_s: Option<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<PaperFigure>,
}

/// Groups of panels for every scenario. The remaining panels form the group [`OTHERS`].
const GROUPS: &[(&str, &[&str])] = &[
    ("network", &["rate", "rate-reverse", "queue", "loss"]),
    ("control", &["gradient", "states", "control", "window"]),
    ("frames", &["frames", "rtt"]),
    ("distribution", &["cdf-queue", "cdf-owd", "cdf-frames", "cdf-rtt"]),
];
const OTHERS: &str = "signals";

pub fn papers() -> Vec<PaperFigure> {
    let file: File = toml::from_str(PAPERS).expect("checked by a test");
    file.figure
}

pub fn select(results: &Results, figures: &[Figure]) -> Vec<Figure> {
    let mut selected = Vec::new();
    for scenario in results.scenarios() {
        let of_scenario = figures.iter().filter(|figure| figure.scenario == scenario);
        let (overlays, figures): (Vec<&Figure>, Vec<&Figure>) = of_scenario.partition(|figure| figure.is_overlay());
        selected.extend(overlays.into_iter().map(|overlay| Figure { title: String::new(), ..overlay.clone() }));
        selected.extend(groups(scenario, &figures));
        let papers = papers().into_iter().filter(|choice| choice.scenario == scenario);
        selected.extend(papers.filter_map(|choice| of_paper(&choice, &results.runs, &figures)));
    }
    let mut selected: Vec<Figure> = selected.into_iter().map(legible).collect();
    selected.retain(|figure| !figure.panels.is_empty());
    selected
}

/// Most subjects of a figure: its legend has an entry for each.
const MOST_SUBJECTS: usize = 7;

/// Keeps one run of each kind, that of the lowest seed, and the first [`MOST_SUBJECTS`] kinds.
fn legible(mut figure: Figure) -> Figure {
    let subjects = std::mem::take(&mut figure.subjects);
    let drawn =
        |index: usize| figure.panels.iter().flat_map(|panel| &panel.series).any(|series| series.subject == Some(index));
    let is_lowest = |subject: &Subject| subjects.iter().all(|s| s.kind != subject.kind || s.seed >= subject.seed);
    let of_one_seed: Vec<usize> = (0..subjects.len()).filter(|s| drawn(*s) && is_lowest(&subjects[*s])).collect();
    let kept = &of_one_seed[..of_one_seed.len().min(MOST_SUBJECTS)];
    if kept.len() < of_one_seed.len() {
        figure.title = format!("The first {} of {}", kept.len(), of_one_seed.len());
    }
    for panel in &mut figure.panels {
        panel.series.retain_mut(|series| {
            let place = series.subject.map(|subject| kept.iter().position(|index| *index == subject));
            series.subject = place.flatten();
            place != Some(None)
        });
    }
    figure.panels.retain(|panel| panel.series.iter().any(|series| series.subject.is_some()));
    figure.subjects = kept.iter().map(|index| subjects[*index].clone()).collect();
    figure
}

fn groups(scenario: &str, figures: &[&Figure]) -> Vec<Figure> {
    let Some(first) = figures.first() else { return Vec::new() };
    let panels = || figures.iter().flat_map(|figure| &figure.panels);
    let group = |name: &str, panels: Vec<Panel>| Figure {
        id: format!("{scenario}/{name}"),
        scenario: scenario.to_owned(),
        title: String::new(),
        subjects: first.subjects.clone(),
        panels: panels.into_iter().map(untitled).collect(),
    };
    let known = |id: &str| GROUPS.iter().any(|(_, ids)| ids.contains(&id));
    let mut groups: Vec<Figure> = GROUPS
        .iter()
        .map(|(name, ids)| group(name, ids.iter().filter_map(|id| panels().find(|p| p.id == *id)).cloned().collect()))
        .collect();
    groups.push(group(OTHERS, panels().filter(|panel| !known(&panel.id)).cloned().collect()));
    groups
}

/// Removes the title: the axis label is sufficient.
fn untitled(panel: Panel) -> Panel {
    Panel { title: String::new(), ..panel }
}

/// Returns a figure of a paper if every one of its cases has runs.
fn of_paper(choice: &PaperFigure, runs: &[Run], figures: &[&Figure]) -> Option<Figure> {
    let subjects = &figures.first()?.subjects;
    let is_of = |subject: &Subject, case: &str| {
        let labels: Vec<String> = case.split(' ').map(|label| format!("case.{label}")).collect();
        let is = |run: &Run| labels.iter().all(|label| run.about.run.changes.contains(label));
        runs.iter().any(|run| run.about.run.directory == subject.run && is(run))
    };
    let of_case = |case: &str| -> Vec<usize> { (0..subjects.len()).filter(|s| is_of(&subjects[*s], case)).collect() };
    let cases: Vec<Vec<usize>> = choice.cases.iter().map(|case| of_case(case)).collect();
    if cases.iter().any(Vec::is_empty) {
        return None;
    }
    // Title and subjects of each part.
    let mut parts: Vec<(String, Vec<usize>)> = match (cases.is_empty(), choice.apart) {
        (true, _) => vec![(String::new(), (0..subjects.len()).collect())],
        (false, false) => vec![(String::new(), cases.concat())],
        (false, true) => choice.cases.iter().cloned().zip(cases).collect(),
    };
    let is_shown = |subject: usize| choice.flows.is_empty() || choice.flows.contains(&subjects[subject].flow);
    parts.iter_mut().for_each(|(_, part)| part.retain(|subject| is_shown(*subject)));

    let mut picture = Figure {
        id: choice.id.clone(),
        scenario: choice.scenario.clone(),
        title: String::new(),
        subjects: Vec::new(),
        panels: Vec::new(),
    };
    for (name, part) in &parts {
        part.iter().for_each(|subject| _ = subject_index(&mut picture.subjects, &subjects[*subject], choice.apart));
        for id in &choice.panels {
            let (id, only) = id.split_once(':').map_or((id.as_str(), None), |(id, only)| (id, Some(only)));
            let panel = figures.iter().find_map(|figure| figure.panel(id));
            let Some(mut panel) = panel.cloned() else { continue };
            panel.title.clone_from(name);
            panel.series.retain(|series| match series.subject {
                Some(subject) => part.contains(&subject) && only.is_none_or(|only| only == series.id),
                None => true,
            });
            for series in &mut panel.series {
                series.subject =
                    series.subject.map(|s| subject_index(&mut picture.subjects, &subjects[s], choice.apart));
            }
            if let Some(window) = choice.window_s.filter(|_| panel.series.iter().all(|s| s.kind != SeriesKind::Cdf)) {
                panel.x.range = Some(window);
                panel.series.iter_mut().for_each(|series| cut(series, window));
            }
            if panel.series.iter().any(|series| series.subject.is_some()) {
                picture.panels.push(panel);
            }
        }
    }
    Some(picture)
}

/// Returns the index of a subject in a figure, added if necessary. With separate cases, a flow has one subject in all cases.
fn subject_index(subjects: &mut Vec<Subject>, subject: &Subject, apart: bool) -> usize {
    let same = |known: &Subject| if apart { known.flow == subject.flow } else { known == subject };
    subjects.iter().position(same).unwrap_or_else(|| {
        let label = if apart { subject.flow.clone() } else { subject.label.clone() };
        subjects.push(Subject { label, ..subject.clone() });
        subjects.len() - 1
    })
}

/// Restricts a series to a window. Values that hold until the next are extended to its ends.
fn cut(series: &mut Series, (from, to): (f64, f64)) {
    let first = series.x.partition_point(|x| *x < from);
    let end = series.x.partition_point(|x| *x <= to);
    let holds = matches!(series.kind, SeriesKind::Steps | SeriesKind::Band);
    let before = (holds && first > 0).then(|| series.y[first - 1]);
    let goes_on = holds && end < series.x.len();
    (series.x, series.y) = (series.x[first..end].to_vec(), series.y[first..end].to_vec());
    if let Some(y) = before {
        series.x.insert(0, from);
        series.y.insert(0, y);
    }
    if let Some(y) = series.y.last().copied().filter(|_| goes_on) {
        series.push(to, y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::Role;

    #[test]
    fn paper_figures_are_valid_and_unique() {
        let papers = papers();
        assert!(papers.len() > 10, "{}", papers.len());
        for (index, choice) in papers.iter().enumerate() {
            assert!(papers[..index].iter().all(|other| other.id != choice.id), "{} twice", choice.id);
            assert!(!choice.panels.is_empty() && (!choice.apart || choice.cases.len() > 1), "{}", choice.id);
            for panel in choice.panels.iter().map(|panel| panel.split(':').next().unwrap()) {
                let grouped = GROUPS.iter().any(|(_, ids)| ids.contains(&panel));
                assert!(grouped || panel == OTHERS, "{}: {panel}", choice.id);
            }
        }
    }

    #[test]
    fn legends_have_one_seed_and_at_most_seven_entries() {
        let of = |kinds: u64, seeds: std::ops::Range<u64>| {
            let mut figure = Figure {
                id: "s/time".to_owned(),
                scenario: "s".to_owned(),
                title: String::new(),
                subjects: Vec::new(),
                panels: vec![Panel {
                    id: "rate".to_owned(),
                    title: String::new(),
                    caption: String::new(),
                    x: crate::report::figure::Axis::time(1.0),
                    y: crate::report::figure::Axis::new("rate", "Mbit/s"),
                    series: Vec::new(),
                }],
            };
            for (index, (kind, seed)) in
                (0..kinds).flat_map(|kind| seeds.clone().map(move |seed| (kind, seed))).enumerate()
            {
                let kind = format!("kind {kind}");
                let label = format!("{kind} · seed {seed}");
                let (run, flow, controller) = (label.clone(), "f".to_owned(), String::new());
                figure.subjects.push(Subject { run, seed, flow, controller, label, kind, traffic: false });
                let mut series = Series::new("s", "s", index, Role::Main, SeriesKind::Line);
                series.push(0.0, index as f64);
                figure.panels[0].series.push(series);
            }
            legible(figure)
        };
        let values = |figure: &Figure| figure.panels[0].series.iter().map(|s| (s.subject, s.y[0])).collect::<Vec<_>>();
        let few = of(2, 4..7);
        assert_eq!((few.title.as_str(), few.subjects.len()), ("", 2));
        assert_eq!(values(&few), [(Some(0), 0.0), (Some(1), 3.0)]);
        let many = of(10, 1..3);
        assert_eq!((many.title.as_str(), many.subjects.len(), values(&many).len()), ("The first 7 of 10", 7, 7));
        assert_eq!((values(&many)[6], many.subjects[6].seed), ((Some(6), 12.0), 1));
    }

    #[test]
    fn window_extends_steps_to_its_ends() {
        let of = |kind| {
            let mut series = Series::new("s", "s", 0, Role::Main, kind);
            [(0.0, 1.0), (4.0, 2.0), (9.0, 3.0)].into_iter().for_each(|(x, y)| series.push(x, y));
            cut(&mut series, (2.0, 6.0));
            (series.x, series.y)
        };
        assert_eq!(of(SeriesKind::Steps), (vec![2.0, 4.0, 6.0], vec![1.0, 2.0, 2.0]));
        assert_eq!(of(SeriesKind::Points), (vec![4.0], vec![2.0]));
    }
}
