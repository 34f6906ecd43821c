// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a choice: the verdict, one picture, a table for each path, what the choice does not say, and the command that repeats it.
//! It has no script, loads nothing, and prints on one sheet of A4.

use super::check_text::summary_text;
use super::dot_plot::{Dot, DotPlot, DotRow};
use super::error::ReportError;
use super::page::{STYLE, write_page};
use super::policy::policy;
use super::ranking_text;
use crate::compare::gaps::count_text;
use crate::compare::{Choice, ChosenPath};
use crate::results::{RankedController, Role};
use askama::Template;
use paceline_netsim::records::{MetricCatalogue, MetricKind};
use std::path::Path;

pub const CHOICE_PAGE: &str = "choice.html";

const OWN_STYLE: &str = concat!(include_str!("page/dot_plot.css"), include_str!("page/choice.css"));

/// Quantities beside the ranking of a path: those of the call, without intervals.
const QUANTITIES: [(&str, &str); 3] =
    [("throughput_bps", "rate"), ("frame_delay_p95_ms", "frame delay p95"), ("freeze_ratio", "frozen")];

/// Gap between the axes of the picture, and the width of a character of its headings.
const GAP: f64 = 32.0;
const CHARACTER: f64 = 6.6;

pub fn write(choice: &Choice, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&render(choice, metrics)?, to)
}

/// Returns the page.
pub fn render(choice: &Choice, metrics: MetricCatalogue) -> Result<String, ReportError> {
    // Backticks mark names in the terminal only.
    let plain = |text: &String| text.replace('`', "");
    let mut verdict = choice.verdict.iter().map(plain);
    let several = choice.paths.len() > 1;
    // One legend for all tables: ties and other flows may be on one path alone.
    let rankings = choice.paths.iter().map(|path| &path.table.ranking).chain([&choice.ranking]);
    let legends = rankings.map(|ranking| ranking_text::legend(ranking));
    let page = Page {
        names: choice.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", "),
        headline: verdict.next().unwrap_or_default(),
        verdict: verdict.collect::<Vec<_>>().join(" "),
        picture: picture(choice),
        paths: choice.paths.iter().map(|path| PathView::of(path, several, metrics)).collect(),
        legend: legends.max_by_key(String::len).unwrap_or_default(),
        limits: choice.limits.iter().map(plain).collect(),
        command: &choice.command,
        size: if choice.paths.len() > 2 { "small" } else { "" },
        policy: policy(&[], &[STYLE, OWN_STYLE]),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "choice.html")]
struct Page<'a> {
    names: String,
    headline: String,
    verdict: String,
    picture: String,
    paths: Vec<PathView>,
    legend: String,
    limits: Vec<String>,
    command: &'a str,
    size: &'static str,
    policy: String,
}

struct PathView {
    name: String,
    title: String,
    /// Runs, their length, and gaps of the path.
    facts: String,
    /// The verdict on this path, where it is not that of the page.
    verdict: String,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl PathView {
    fn of(path: &ChosenPath, several: bool, metrics: MetricCatalogue) -> Self {
        let table = &path.table;
        let mut rows = ranking_text::rows(&table.ranking);
        for (metric, label) in QUANTITIES {
            let of = |row: &&crate::results::ComparisonRow| row.metric == metric && row.subject.role == Role::Media;
            let Some(row) = table.rows.iter().find(of) else { continue };
            let kind = metrics.get(metric).map_or(MetricKind::Number, |metric| metric.kind);
            rows[0].push(format!("{label}, {}", kind.shown_unit()));
            for (line, entry) in rows[1..].iter_mut().zip(&table.ranking) {
                let column = table.controllers.iter().position(|name| *name == entry.controller);
                let value = column.and_then(|column| row.values[column]);
                line.push(value.map_or("–".to_owned(), |value| kind.digits(value.mean)));
            }
        }
        let gaps = count_text(path.gaps);
        let runs = match table.seeds.len() {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        let verdict = if several { table.verdict.join(" ").replace('`', "") } else { String::new() };
        let headings = rows.remove(0);
        Self {
            name: path.name.clone(),
            title: table.title.clone(),
            facts: format!("{runs} of {:.0} s; the path has {gaps}", path.seconds),
            verdict,
            headings,
            rows,
        }
    }
}

/// Draws the score of each candidate on each path, and the mean where there are several.
fn picture(choice: &Choice) -> String {
    let mean = (choice.paths.len() > 1).then_some(("mean", &choice.ranking));
    let paths = choice.paths.iter().map(|path| (path.name.as_str(), &path.table.ranking));
    let columns: Vec<(&str, &Vec<RankedController>)> = mean.into_iter().chain(paths).collect();
    // One without a score on some path is in no mean.
    let all = columns.iter().max_by_key(|(_, ranking)| ranking.len()).map_or(&choice.ranking, |(_, ranking)| ranking);
    let others = all.iter().filter(|entry| choice.ranking.iter().all(|known| known.controller != entry.controller));
    let longest = columns.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let plot = DotPlot {
        label: "Score of each controller on each path",
        ends: (0.0, 100.0),
        axis: (520.0 / columns.len() as f64 - GAP).max(longest as f64 * CHARACTER).round(),
        gap: GAP,
        columns: columns.iter().map(|(name, _)| *name).collect(),
        rows: choice.ranking.iter().chain(others).map(|entry| row(entry, &columns)).collect(),
    };
    plot.draw()
}

fn row<'a>(entry: &'a RankedController, columns: &[(&str, &Vec<RankedController>)]) -> DotRow<'a> {
    let dot = |(_, ranking): &(&str, &Vec<RankedController>)| {
        let score = ranking.iter().find(|of| of.controller == entry.controller)?.score;
        let interval = (score.n > 1).then_some(score.ci95);
        Some(Dot { value: score.mean, interval, title: summary_text(&score, |points| format!("{points:.1}")) })
    };
    DotRow { name: &entry.controller, kind: entry.kind, dots: columns.iter().map(dot).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Candidates, choose};
    use crate::metrics;
    use crate::run::Runner;
    use crate::suite::Subject;
    use crate::yardsticks::Oracle;
    use paceline::Registry;
    use paceline_scenario::{Call, CallPath};

    #[test]
    fn page_has_verdict_picture_tables_limits_and_command() {
        let registry = Oracle::add_all(Registry::standard());
        let subjects = Subject::named(&["nada".to_owned(), "drc".to_owned()], &registry);
        let call = Call { duration: Some("12 s".to_owned()), ..Call::default() };
        let paths = CallPath::find_all(&[], &["dsl".to_owned(), "lte-drive".to_owned()], &call).unwrap();
        let run = |path| {
            let of = Candidates::load(path, &subjects, &[], &registry).unwrap();
            let results = of.run(&Runner::simulator(&registry), &[1, 2]).unwrap();
            (of, results)
        };
        let runs: Vec<_> = paths.into_iter().map(run).collect();
        let choice = Choice { command: "paceline choose <x>".to_owned(), ..choose(&runs, &[], &registry) };
        let page = render(&choice, metrics::catalogue()).unwrap();
        let (_, page) = page.split_once("<body>").unwrap();
        let count = |part: &str| page.matches(part).count();
        assert_eq!((count("<h1>"), count("<svg "), count("<table>"), count("<script")), (1, 1, 2, 0));
        // Three controllers, in the mean and on two paths.
        assert_eq!((count("<circle "), count("<th scope=\"row\">nada")), (9, 2));
        assert!(page.contains("paceline choose &#60;x&#62;") && !page.contains('`'), "{page}");
        for part in ["frame delay p95, ms", "12 s; the path has ", "dsl is a preset", "of these paths alone"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
