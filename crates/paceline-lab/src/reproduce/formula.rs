// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of a paper that follow from one of its formulas, without a run. `NAME.formula.toml` names the formula and lists the
//! published values, which are compared at their printed precision.
//!
//! A formula may have several lines; each value names its line. If that line contradicts the value, the note names the
//! nearest line.

use crate::results::{CaseRuns, Cell, CellVerdict, Check, ExperimentReport, Verdict};
use paceline::internals::gcc::{AlphaBranch, dynamic_alpha};
use paceline_netsim::records::Label;
use paceline_scenario::{Origin, ScenarioError, Spanned, parse};
use serde::Deserialize;
use std::collections::BTreeMap;

pub struct Formula {
    pub name: &'static str,
    /// A short description.
    pub summary: &'static str,
    pub inputs: &'static [&'static str],
    /// Its lines by name; a single one if the formula has no cases.
    pub lines: &'static [Line],
}

/// A line of a formula: its name and its function of the inputs.
pub type Line = (&'static str, fn(&[f64]) -> f64);

/// Every formula. To add a formula, add an entry here.
pub const FORMULAS: &[Formula] = &[Formula {
    name: "dynamic-alpha",
    summary: "the decrease factor alpha of uottawa15, equations 4.1 to 4.4",
    inputs: &["T", "gamma"],
    lines: &[
        ("max-unknown", |at| dynamic_alpha(at[0], at[1], AlphaBranch::Elsewhere)),
        ("near-max", |at| dynamic_alpha(at[0], at[1], AlphaBranch::NearMax)),
    ],
}];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    id: String,
    title: String,
    #[serde(default)]
    source: String,
    formula: Spanned<String>,
    /// Decimals of the printed values.
    digits: Spanned<u32>,
    value: Vec<ValueTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueTable {
    /// All inputs of the formula.
    at: Spanned<BTreeMap<String, Spanned<f64>>>,
    line: Spanned<String>,
    published: Spanned<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FormulaTable {
    pub report: ExperimentReport,
}

impl FormulaTable {
    pub fn load(origin: &Origin) -> Result<Self, ScenarioError> {
        let file: TableFile = parse(&origin.name, &origin.text)?;
        let names: Vec<&str> = FORMULAS.iter().map(|f| f.name).collect();
        let known = FORMULAS.iter().find(|f| f.name == file.formula.get());
        let formula = known.ok_or_else(|| origin.unknown(&file.formula, "formula", &names))?;
        if *file.digits.get() > 9 {
            let help = "write the number of printed decimals";
            return Err(origin.error_at(&file.digits, "`digits` must be at most 9", help));
        }
        let judge = |(place, value)| cell(origin, formula, *file.digits.get(), value, place);
        let cells = file.value.iter().enumerate().map(|(place, v)| judge((place, v))).collect::<Result<Vec<_>, _>>()?;
        let runs = cells.iter().map(|cell| CaseRuns::of_value(&cell.case, cell.measured)).collect();
        let TableFile { id, title, source, .. } = file;
        let report = ExperimentReport { id, title, source, runs, cells, ..ExperimentReport::default() };
        Ok(Self { report })
    }
}

fn cell(
    origin: &Origin,
    formula: &Formula,
    digits: u32,
    value: &ValueTable,
    place: usize,
) -> Result<Cell, ScenarioError> {
    let given = value.at.get();
    let inputs = formula.inputs.iter().map(|name| given.get(*name)).collect::<Option<Vec<&Spanned<f64>>>>();
    let Some(inputs) = inputs.filter(|_| given.len() == formula.inputs.len()) else {
        let message = format!("`{}` takes {}", formula.name, formula.inputs.join(" and "));
        return Err(origin.error_at(&value.at, message, "write each of them once, as a number"));
    };
    let inputs = inputs.into_iter().map(|input| finite(origin, input)).collect::<Result<Vec<f64>, _>>()?;
    let published = finite(origin, &value.published)?;
    let names: Vec<&str> = formula.lines.iter().map(|(name, _)| *name).collect();
    let known = formula.lines.iter().find(|(name, _)| name == value.line.get());
    let own = known.ok_or_else(|| origin.unknown(&value.line, "line of the formula", &names))?;
    let tolerance = 0.5 * libm::pow(10.0, -f64::from(digits));
    let agrees = |of: f64| Check::Published { value: published, tolerance }.contains(of);
    let measured = own.1(&inputs);
    if !measured.is_finite() {
        let message = format!("the line `{}` of `{}` has no value here: {measured}", own.0, formula.name);
        return Err(origin.error_at(&value.at, message, "write the inputs that the paper's own table has"));
    }
    let label = formula.inputs.iter().zip(&inputs).map(|(name, input)| ((*name).to_owned(), input.to_string()));
    Ok(Cell {
        metric: formula.name.to_owned(),
        world: "none".to_owned(),
        case: label.chain([("line".to_owned(), own.0.to_owned())]).collect::<Label>(),
        published: Some(published),
        tolerance: Some(tolerance),
        measured: Some(measured),
        verdict: if agrees(measured) { CellVerdict::Reproduced } else { CellVerdict::Not },
        check: Some(if agrees(measured) { Verdict::Holds } else { Verdict::Fails }),
        note: (!agrees(measured)).then(|| nearest(formula, own, &inputs, published, &agrees)),
        place,
        ..Cell::default()
    })
}

/// Describes the line nearest to a value that its own line contradicts.
fn nearest(formula: &Formula, own: &Line, inputs: &[f64], published: f64, agrees: &dyn Fn(f64) -> bool) -> String {
    let off = |line: &Line| (line.1(inputs) - published).abs();
    let best = formula.lines.iter().min_by(|a, b| off(a).total_cmp(&off(b))).expect("a formula has a line");
    let (own_line, gives) = (format!("the formula's line `{}` gives {:.4}", own.0, own.1(inputs)), best.1(inputs));
    match (best.0 == own.0, agrees(gives)) {
        (true, _) => format!("{own_line}; no line comes nearer"),
        (false, true) => format!("{own_line}; the line `{}` agrees: {gives:.4}", best.0),
        (false, false) => {
            format!("{own_line}; nearest is the line `{}`, which does not agree either: {gives:.4}", best.0)
        }
    }
}

/// Returns a published number, which must be finite.
fn finite(origin: &Origin, place: &Spanned<f64>) -> Result<f64, ScenarioError> {
    let number = *place.get();
    let help = "write the number that the paper prints";
    let error = || origin.error_at(place, format!("`{number}` is not finite"), help);
    number.is_finite().then_some(number).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_scenario::Catalogue;

    /// Six of the ten values contradict the equations; three of these agree with the other line.
    #[test]
    fn table_2_of_uottawa15_contradicts_its_equations() {
        let origin = Catalogue.find_formula_table("uottawa15/table2").unwrap();
        let report = FormulaTable::load(&origin).unwrap().report;
        let verdicts = |verdict| report.cells.iter().filter(|c| c.verdict == verdict).collect::<Vec<&Cell>>();
        assert_eq!(verdicts(CellVerdict::Reproduced).len(), 4);
        let not = verdicts(CellVerdict::Not);
        let noted = |what: &str| -> Vec<String> {
            let cells = not.iter().filter(|c| c.note.as_ref().unwrap().contains(what));
            cells.map(|c| c.case.to_string()).collect()
        };
        assert_eq!(not.len(), 6);
        assert_eq!(noted("no line comes nearer"), ["T=1000 gamma=25 line=max-unknown"]);
        let near = |t: u32| format!("T={t} gamma=12.5 line=near-max");
        assert_eq!(noted("`max-unknown` agrees"), [near(13), near(100), near(5000)]);
        assert_eq!(noted("does not agree either"), [near(20), near(45)]);
        assert!((not[1].measured.unwrap() - 0.99766).abs() < 1e-5, "{:?}", not[1]);
        assert!(report.cells.iter().all(|c| (c.tolerance.unwrap() - 0.005).abs() < 1e-12 && c.n == 0));
        let hashes: std::collections::BTreeSet<&String> = report.runs.iter().map(|r| &r.trace_hash).collect();
        assert_eq!(hashes.len(), 10, "every value has its own hash");
    }

    #[test]
    fn problems_point_to_the_offending_text() {
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
