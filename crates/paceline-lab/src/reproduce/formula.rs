//! Tables of a paper that one of its own formulas gives, without a run: `NAME.formula.toml` names the formula and says
//! every published value, which is judged at the digits that it was printed with.
//!
//! A formula may have several lines, of which a value says the one that it belongs to. Where that one contradicts the value
//! the note says which line comes nearest.

use super::report::{CaseRuns, Cell, ExperimentReport};
use super::tolerance::within;
use super::verdict::Verdict;
use crate::label::Label;
use crate::scenario::{Origin, Placed, Problem, parse, suggestion};
use crate::stats::Statistic;
use paceline::gcc::{Branch, dynamic_alpha};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A formula of a paper.
pub struct Formula {
    /// Its name in files, and in the place of a metric in results.
    pub name: &'static str,
    /// A line on it.
    pub summary: &'static str,
    /// What it takes, in this order.
    pub inputs: &'static [&'static str],
    /// Its lines by name; one, if the formula has no cases.
    pub lines: &'static [Line],
}

/// A line of a formula: its name, and its value at the inputs.
pub type Line = (&'static str, fn(&[f64]) -> f64);

/// Every formula. To add one: a line here.
pub const FORMULAS: &[Formula] = &[Formula {
    name: "dynamic-alpha",
    summary: "the decrease factor alpha of uottawa15, equations 4.1 to 4.4",
    inputs: &["T", "gamma"],
    lines: &[
        ("max-unknown", |at| dynamic_alpha(at[0], at[1], Branch::Elsewhere)),
        ("near-max", |at| dynamic_alpha(at[0], at[1], Branch::NearMax)),
    ],
}];

/// What stands in such a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    id: String,
    title: String,
    #[serde(default)]
    source: String,
    /// Which formula.
    formula: Placed<String>,
    /// Digits behind the point that the values are printed with.
    digits: Placed<u32>,
    value: Vec<ValueTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueTable {
    /// Every input of the formula.
    at: Placed<BTreeMap<String, Placed<f64>>>,
    /// Which line of the formula.
    line: Placed<String>,
    published: Placed<f64>,
}

/// A table that a formula gives.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaTable {
    /// Every value beside what the formula gives.
    pub report: ExperimentReport,
}

impl FormulaTable {
    /// The table of this text.
    pub fn load(origin: &Origin) -> Result<Self, Problem> {
        let file: TableFile = parse(&origin.name, &origin.text)?;
        let names: Vec<&str> = FORMULAS.iter().map(|f| f.name).collect();
        let known = FORMULAS.iter().find(|f| f.name == file.formula.get());
        let formula = known.ok_or_else(|| unknown(origin, &file.formula, "formula", &names))?;
        if *file.digits.get() > 9 {
            let problem = at(origin, &file.digits, "nobody prints so many digits");
            return Err(problem.help("write how many stand behind the point, 9 at most"));
        }
        let judge = |(place, value)| cell(origin, formula, *file.digits.get(), value, place);
        let cells = file.value.iter().enumerate().map(|(place, v)| judge((place, v))).collect::<Result<Vec<_>, _>>()?;
        let runs = cells.iter().map(|cell| CaseRuns::of_value(&cell.case, cell.measured)).collect();
        let TableFile { id, title, source, .. } = file;
        let report = ExperimentReport { id, title, source, runs, cells, ..ExperimentReport::default() };
        Ok(Self { report })
    }
}

fn cell(origin: &Origin, formula: &Formula, digits: u32, value: &ValueTable, place: usize) -> Result<Cell, Problem> {
    let given = value.at.get();
    let inputs = formula.inputs.iter().map(|name| given.get(*name)).collect::<Option<Vec<&Placed<f64>>>>();
    let Some(inputs) = inputs.filter(|_| given.len() == formula.inputs.len()) else {
        let message = format!("`{}` takes {}", formula.name, formula.inputs.join(" and "));
        return Err(at(origin, &value.at, message).help("write each of them once, as a number"));
    };
    let inputs = inputs.into_iter().map(|input| finite(origin, input)).collect::<Result<Vec<f64>, _>>()?;
    let published = finite(origin, &value.published)?;
    let names: Vec<&str> = formula.lines.iter().map(|(name, _)| *name).collect();
    let known = formula.lines.iter().find(|(name, _)| name == value.line.get());
    let own = known.ok_or_else(|| unknown(origin, &value.line, "line of the formula", &names))?;
    let tolerance = 0.5 * libm::pow(10.0, -f64::from(digits));
    let agrees = |of: f64| within((of - published).abs(), tolerance);
    let measured = own.1(&inputs);
    if !measured.is_finite() {
        let message = format!("the line `{}` of `{}` has no value here: {measured}", own.0, formula.name);
        return Err(at(origin, &value.at, message).help("write the inputs that the paper's own table has"));
    }
    let label = formula.inputs.iter().zip(&inputs).map(|(name, input)| ((*name).to_owned(), input.to_string()));
    Ok(Cell {
        metric: formula.name.to_owned(),
        controller: String::new(),
        world: "none".to_owned(),
        case: label.chain([("line".to_owned(), own.0.to_owned())]).collect::<Label>(),
        flow: None,
        window_s: (0.0, 0.0),
        runs: Statistic::Mean,
        over: None,
        published: Some(published),
        bounds: None,
        tolerance: Some(tolerance),
        measured: Some(measured),
        ci95: None,
        n: 0,
        left_out: None,
        null_sender: None,
        null_reproduces: false,
        claim: None,
        verdict: if agrees(measured) { Verdict::Reproduced } else { Verdict::Not },
        note: (!agrees(measured)).then(|| nearest(formula, own, &inputs, published, &agrees)),
        beside: None,
        moved: None,
        place,
    })
}

/// Which line comes nearest to a value that its own line contradicts.
fn nearest(formula: &Formula, own: &Line, inputs: &[f64], published: f64, agrees: &dyn Fn(f64) -> bool) -> String {
    let off = |line: &Line| (line.1(inputs) - published).abs();
    let best = formula.lines.iter().min_by(|a, b| off(a).total_cmp(&off(b))).expect("a formula has a line");
    let (told, gives) = (format!("the formula's line `{}` gives {:.4}", own.0, own.1(inputs)), best.1(inputs));
    match (best.0 == own.0, agrees(gives)) {
        (true, _) => format!("{told}; no line comes nearer"),
        (false, true) => format!("{told}; the line `{}` agrees: {gives:.4}", best.0),
        (false, false) => format!("{told}; nearest is the line `{}`, which does not agree either: {gives:.4}", best.0),
    }
}

/// A number as a paper prints it.
fn finite(origin: &Origin, place: &Placed<f64>) -> Result<f64, Problem> {
    let number = *place.get();
    match number.is_finite() {
        true => Ok(number),
        false => {
            Err(at(origin, place, format!("`{number}` is not finite")).help("write the number that the paper prints"))
        }
    }
}

fn at<T>(origin: &Origin, place: &Placed<T>, message: impl Into<String>) -> Problem {
    Problem::at(&origin.name, &origin.text, place.span(), message)
}

fn unknown(origin: &Origin, place: &Placed<String>, what: &str, known: &[&str]) -> Problem {
    at(origin, place, format!("no {what} `{}`", place.get())).help(suggestion(place.get(), known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Catalogue;

    /// The thesis's ten values; the equations say otherwise of six, and three of these agree with the other line.
    #[test]
    fn the_thesis_s_table_contradicts_its_own_equations() {
        let origin = Catalogue.find_formula_table("uottawa15/table2").unwrap();
        let report = FormulaTable::load(&origin).unwrap().report;
        let verdicts = |verdict| report.cells.iter().filter(|c| c.verdict == verdict).collect::<Vec<&Cell>>();
        assert_eq!(verdicts(Verdict::Reproduced).len(), 4);
        let not = verdicts(Verdict::Not);
        let told = |what: &str| -> Vec<String> {
            let told = not.iter().filter(|c| c.note.as_ref().unwrap().contains(what));
            told.map(|c| c.case.to_string()).collect()
        };
        assert_eq!(not.len(), 6);
        assert_eq!(told("no line comes nearer"), ["T=1000 gamma=25 line=max-unknown"]);
        let near = |t: u32| format!("T={t} gamma=12.5 line=near-max");
        assert_eq!(told("`max-unknown` agrees"), [near(13), near(100), near(5000)]);
        assert_eq!(told("does not agree either"), [near(20), near(45)]);
        assert!((not[1].measured.unwrap() - 0.99766).abs() < 1e-5, "{:?}", not[1]);
        assert!(report.cells.iter().all(|c| (c.tolerance.unwrap() - 0.005).abs() < 1e-12 && c.n == 0));
        let hashes: std::collections::BTreeSet<&String> = report.runs.iter().map(|r| &r.trace_hash).collect();
        assert_eq!(hashes.len(), 10, "a value that moves is seen by its hash");
    }

    #[test]
    fn what_a_file_says_wrong_is_shown_where_it_stands() {
        let text = |formula: &str, line: &str, inputs: &str| {
            format!(
                "id = \"a/b\"\ntitle = \"a\"\nformula = \"{formula}\"\ndigits = 2\n[[value]]\nat = {{ {inputs} }}\n\
                 line = \"{line}\"\npublished = 0.95\n"
            )
        };
        let fine = text("dynamic-alpha", "max-unknown", "T = 45, gamma = 25");
        let published = |value: &str| fine.replace("published = 0.95", &format!("published = {value}"));
        let load = |text: String| FormulaTable::load(&Origin::from_text("b.formula.toml", text));
        assert!(load(fine.clone()).is_ok());
        for (text, offending, hint) in [
            (text("dynamic-alfa", "near-max", "T = 45, gamma = 25"), "\"dynamic-alfa\"", "`dynamic-alpha`"),
            (text("dynamic-alpha", "near-min", "T = 45, gamma = 25"), "\"near-min\"", "`near-max`"),
            (text("dynamic-alpha", "near-max", "T = 45"), "{ T = 45 }", "each of them"),
            (text("dynamic-alpha", "near-max", "T = 45, gama = 25"), "{ T = 45, gama = 25 }", "each of them"),
            (text("dynamic-alpha", "near-max", "T = inf, gamma = 25"), "inf", "the paper prints"),
            (text("dynamic-alpha", "near-max", "T = 45, gamma = nan"), "nan", "the paper prints"),
            (published("nan"), "nan", "the paper prints"),
            (published("-inf"), "-inf", "the paper prints"),
            (text("dynamic-alpha", "near-max", "T = 0, gamma = 0"), "{ T = 0, gamma = 0 }", "own table"),
            (text("dynamic-alpha", "near-max", "T = 0.01, gamma = 25"), "{ T = 0.01, gamma = 25 }", "own table"),
        ] {
            let problem = load(text).expect_err(offending);
            assert_eq!(problem.offending(), Some(offending));
            assert!(problem.hint().is_some_and(|h| h.contains(hint)), "{:?}", problem.hint());
        }
    }
}
