// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the conclusions of a paper: `conclusions.toml` beside its experiments, with the cells that are evidence of each.

use crate::judge::Experiment;
use crate::results::{Conclusion, Evidence, EvidenceOf, ExperimentReport};
use paceline_netsim::records::Label;
use paceline_scenario::{Origin, ScenarioError, Spanned, parse, suggestion};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionsFile {
    paper: String,
    conclusion: Vec<ConclusionTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionTable {
    text: String,
    place: String,
    evidence: Spanned<Vec<EvidenceTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceTable {
    /// The experiment, without the paper.
    experiment: Spanned<String>,
    /// The id of an `[[assert]]`.
    claim: Option<Spanned<String>>,
    /// The metric of an `[[expect]]`.
    metric: Option<Spanned<String>>,
    /// The cases to which the cells belong; all if absent.
    case: Option<Spanned<Label>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Conclusions {
    paper: String,
    /// Text, place and evidence of each.
    list: Vec<(String, String, Vec<Evidence>)>,
}

impl Conclusions {
    /// Loads the conclusions beside an experiment; `None` if there are none. Evidence of a loaded experiment must exist.
    pub fn beside(origin: &Origin, experiments: &[Experiment]) -> Result<Option<Self>, ScenarioError> {
        let Some(origin) = origin.conclusions()? else { return Ok(None) };
        let file: ConclusionsFile = parse(&origin.name, &origin.text)?;
        let mut list = Vec::new();
        for table in file.conclusion {
            if table.evidence.get().is_empty() {
                let help = "add { experiment = \"…\", claim = \"…\" }";
                return Err(origin.error_at(&table.evidence, "a conclusion needs evidence", help));
            }
            let each = table.evidence.get().iter();
            let evidence = each.map(|one| evidence(&origin, &file.paper, one, experiments));
            list.push((table.text, table.place, evidence.collect::<Result<_, _>>()?));
        }
        Ok(Some(Self { paper: file.paper, list }))
    }

    pub fn judge<'a>(&'a self, experiments: &'a [ExperimentReport]) -> impl Iterator<Item = Conclusion> + 'a {
        self.list
            .iter()
            .filter_map(|(text, place, evidence)| Conclusion::judge((&self.paper, text, place), evidence, experiments))
    }
}

fn evidence(
    origin: &Origin,
    paper: &str,
    table: &EvidenceTable,
    experiments: &[Experiment],
) -> Result<Evidence, ScenarioError> {
    let id = format!("{paper}/{}", table.experiment.get());
    let (of, what) = match (&table.claim, &table.metric) {
        (Some(claim), None) => (EvidenceOf::Claim(claim.get().clone()), claim),
        (None, Some(metric)) => (EvidenceOf::Metric(metric.get().clone()), metric),
        _ => {
            let help = "write claim = \"…\", the id of an [[assert]], or metric = \"…\", that of an [[expect]]";
            return Err(origin.error_at(&table.experiment, "evidence is either a claim or a metric", help));
        }
    };
    let case = table.case.as_ref().map_or_else(Label::default, |case| case.get().clone());
    if let Some(experiment) = experiments.iter().find(|experiment| experiment.id() == id) {
        let cases: Vec<_> = experiment.cases.iter().filter(|scenario| scenario.plan.case.matches(&case)).collect();
        if let (true, Some(pattern)) = (cases.is_empty(), &table.case) {
            let help = "write the label of a [[case]], or some of its pairs";
            return Err(origin.error_at(pattern, format!("{id} has no case `{case}`"), help));
        }
        let names: Vec<&str> = match of {
            EvidenceOf::Claim(_) => cases.iter().flat_map(|s| &s.asserts).map(|a| a.id.as_str()).collect(),
            EvidenceOf::Metric(_) => {
                cases.iter().flat_map(|s| &s.expects).map(|e| e.quantity.metric.as_str()).collect()
            }
        };
        if !names.contains(&what.get().as_str()) {
            let message = format!("{id} has no cell of `{}`", what.get());
            return Err(origin.error_at(what, message, suggestion(what.get(), &names)));
        }
    }
    Ok(Evidence { experiment: id, case, of })
}
