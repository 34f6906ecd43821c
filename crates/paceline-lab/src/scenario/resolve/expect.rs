//! Published values and bounds: which belong to this case, of what they are, and what they are divided by.

use super::{Checked, Resolver};
use crate::label::Label;
use crate::metrics::{self, METRICS};
use crate::plan::{Assert, Expect, FlowPlan, Keep, Quantity, Reference, Remark, Window};
use crate::scenario::Setting;
use crate::scenario::case::known;
use crate::scenario::file::{KeepTable, OverTable, Placed, ScenarioFile};
use crate::scenario::problem::suggestion;
use crate::stats::Statistic;
use paceline_units::Time;
use std::collections::BTreeMap;

/// What runs of one case are compared with.
#[derive(Default)]
pub(super) struct Expectations {
    pub expects: Vec<Expect>,
    pub asserts: Vec<Assert>,
    pub references: BTreeMap<usize, Quantity>,
    /// How many of the file's need another case than this.
    pub elsewhere: usize,
    /// How many lie beyond the end of a run that `--set` made shorter.
    pub beyond: usize,
}

/// What of a table says of what it is.
#[derive(Clone, Copy)]
struct Of<'a> {
    metric: &'a Placed<String>,
    flow: &'a Option<Placed<String>>,
    window: &'a Option<Placed<(Time, Time)>>,
}

/// What a run of this case can be asked.
pub(super) struct Scope<'a> {
    pub file: &'a ScenarioFile,
    pub case: &'a Label,
    pub flows: &'a [FlowPlan],
    pub end: Time,
    /// `--set` says how long the run lasts: values beyond its end are left out.
    pub shortened: bool,
}

impl Scope<'_> {
    fn is_beyond(&self, window: &Option<Placed<(Time, Time)>>) -> bool {
        self.shortened && window.as_ref().is_some_and(|w| w.get().1 > self.end)
    }
}

impl Resolver<'_> {
    pub(super) fn expectations(&self, scope: &Scope<'_>) -> Checked<Expectations> {
        let mut found = Expectations::default();
        let ids: Vec<&str> = scope.file.assert.iter().map(|a| a.id.as_str()).collect();
        for (key, e) in scope.file.expect.iter().enumerate() {
            let of = Of { metric: &e.metric, flow: &e.flow, window: &e.window };
            if !e.published.get().is_finite() {
                let problem = self.complain(&e.published, "a published value is a number");
                return Err(problem.help("write it in the metric's unit; `paceline list metrics` shows units"));
            }
            let tolerance = match (&e.tolerance, &e.why) {
                (Some(place), _) if !(place.get().is_finite() && *place.get() > 0.0) => {
                    let problem = self.complain(place, "a tolerance is a number above 0");
                    return Err(problem.help("write it in the metric's unit; `paceline list metrics` shows units"));
                }
                (Some(place), why) if why.as_ref().is_none_or(|w| w.get().trim().is_empty()) => {
                    let problem = self.complain(place, "a tolerance other than the usual one is argued");
                    return Err(problem.help("add why = \"…\", or leave the tolerance out for the usual one"));
                }
                (None, Some(why)) => {
                    let problem = self.complain(why, "`why` argues a tolerance, and there is none");
                    return Err(problem.help("add tolerance = …; what else there is to say goes into `note`"));
                }
                (tolerance, _) => tolerance.as_ref().map(|t| *t.get()),
            };
            if let Some(claim) = e.claim.as_ref().filter(|c| !ids.contains(&c.get().as_str())) {
                let problem = self.complain(claim, format!("no [[assert]] has the id `{}`", claim.get()));
                return Err(problem.help(suggestion(claim.get(), &ids)));
            }
            let remark = self.remark(&e.note, &e.moved_by)?;
            let Some(over) = self.measured(scope, of, e.case.as_ref(), e.over.as_ref(), key, &mut found)? else {
                continue;
            };
            found.expects.push(Expect {
                of: self.quantity(scope, of)?,
                over,
                published: *e.published.get(),
                tolerance,
                claim: e.claim.as_ref().map(|c| c.get().clone()),
                remark,
                place: key,
            });
        }
        for (index, a) in scope.file.assert.iter().enumerate() {
            let of = Of { metric: &a.metric, flow: &a.flow, window: &a.window };
            let bounds = *a.bounds.get();
            if bounds.0.is_nan() || bounds.1.is_nan() || bounds.0 > bounds.1 {
                let problem = self.complain(&a.bounds, "bounds are [lowest, highest]");
                return Err(problem.help(match bounds.0 > bounds.1 {
                    true => format!("write [{:?}, {:?}]", bounds.1, bounds.0),
                    false => "-inf and inf stand for no bound".to_owned(),
                }));
            }
            let remark = self.remark(&a.note, &a.moved_by)?;
            let key = scope.file.expect.len() + index;
            let Some(over) = self.measured(scope, of, a.case.as_ref(), a.over.as_ref(), key, &mut found)? else {
                continue;
            };
            let (of, runs) = (self.quantity(scope, of)?, self.statistic(&a.runs)?);
            found.asserts.push(Assert { id: a.id.clone(), of, over, runs, bounds, remark, place: key });
        }
        Ok(found)
    }

    /// What the value of this key is divided by in this case; none if it does not belong to this case. What values of
    /// other cases take from this one is put among the references.
    fn measured(
        &self,
        scope: &Scope<'_>,
        of: Of<'_>,
        pattern: Option<&Placed<Label>>,
        over: Option<&Placed<OverTable>>,
        key: usize,
        found: &mut Expectations,
    ) -> Checked<Option<Option<Reference>>> {
        self.metric(of.metric)?;
        let all = Label::default();
        if let Some(place) = pattern {
            self.some_case(scope.file, place)?;
        }
        let pattern = pattern.map_or(&all, Placed::get);
        let belongs = scope.case.says(pattern);
        if !belongs {
            found.elsewhere += 1;
        } else if scope.is_beyond(of.window) || over.is_some_and(|over| scope.is_beyond(&over.get().window)) {
            found.beyond += 1;
            return Ok(None);
        }
        let Some(place) = over else { return Ok(belongs.then_some(None)) };
        let over = place.get();
        let of = Of {
            metric: over.metric.as_ref().unwrap_or(of.metric),
            flow: if over.flow.is_some() { &over.flow } else { of.flow },
            window: if over.window.is_some() { &over.window } else { of.window },
        };
        self.metric(of.metric)?;
        let Some(case) = &over.case else {
            if over.metric.is_none() && over.flow.is_none() && over.window.is_none() {
                let problem = self.complain(place, "the reference is the value itself");
                return Err(problem.help("say what is different in it: `case`, `metric`, `flow` or `window`"));
            }
            let here = belongs.then(|| self.quantity(scope, of)).transpose()?;
            return Ok(here.map(Reference::Here).map(Some));
        };
        self.some_case(scope.file, case)?;
        let labels = scope.file.case.iter().map(|c| c.label.get());
        for own in labels.filter(|l| l.says(pattern)) {
            let reference = self.reference(scope.file, own, case)?;
            if reference == scope.case && !scope.is_beyond(of.window) {
                found.references.insert(key, self.quantity(scope, of)?);
            }
        }
        if !belongs {
            return Ok(None);
        }
        if scope.case.is_empty() {
            found.elsewhere += 1; // the scenario as written is no case
            return Ok(None);
        }
        let case = self.reference(scope.file, scope.case, case)?.clone();
        found.elsewhere += 1;
        Ok(Some(Some(Reference::Elsewhere { case, key })))
    }

    /// The case that a value of the case `own` is divided by.
    fn reference<'a>(&self, file: &'a ScenarioFile, own: &Label, over: &Placed<Label>) -> Checked<&'a Label> {
        let (wanted, labels) = (own.with(over.get()), || file.case.iter().map(|c| c.label.get()));
        let problem = match labels().find(|l| **l == wanted) {
            Some(label) if label != own => return Ok(label),
            Some(_) => self.complain(over, format!("`{own}` would be divided by itself")),
            None => self.complain(over, format!("for `{own}` this is `{wanted}`, and there is no such case")),
        };
        Err(problem.help(known(file)))
    }

    fn some_case(&self, file: &ScenarioFile, place: &Placed<Label>) -> Checked<()> {
        if file.case.iter().any(|c| c.label.get().says(place.get())) {
            return Ok(());
        }
        Err(self.complain(place, format!("no case is `{}`", place.get())).help(known(file)))
    }

    fn statistic(&self, place: &Option<Placed<String>>) -> Checked<Statistic> {
        let Some(place) = place else { return Ok(Statistic::default()) };
        let found = Statistic::NAMES.iter().find(|(name, _)| name == place.get());
        found.map(|(_, statistic)| *statistic).ok_or_else(|| {
            let known = Statistic::NAMES.map(|(name, _)| name);
            self.complain(place, format!("no such number of several runs: `{}`", place.get()))
                .help(suggestion(place.get(), &known))
        })
    }

    fn remark(&self, note: &Option<String>, moved_by: &[Placed<String>]) -> Checked<Remark> {
        for place in moved_by {
            place.get().parse::<Setting>().map_err(|message| {
                self.complain(place, message).help("write what would follow --set: \"flow.video.encoder.max=1Mbps\"")
            })?;
        }
        Ok(Remark { note: note.clone(), moved_by: moved_by.iter().map(|m| m.get().clone()).collect() })
    }

    /// Which runs count.
    pub(super) fn keep(&self, place: &Placed<KeepTable>, flows: &[FlowPlan], end: Time) -> Checked<Keep> {
        let KeepTable { metric, flow, at_least, note } = place.get();
        if !at_least.get().is_finite() {
            return Err(self.complain(at_least, "what is asked of a run is a number").help("write it like 1"));
        }
        let of = self.quantity_of(Of { metric, flow, window: &None }, flows, end)?;
        Ok(Keep { of, at_least: *at_least.get(), note: note.clone() })
    }

    fn quantity(&self, scope: &Scope<'_>, of: Of<'_>) -> Checked<Quantity> {
        self.quantity_of(of, scope.flows, scope.end)
    }

    fn quantity_of(&self, of: Of<'_>, flows: &[FlowPlan], end: Time) -> Checked<Quantity> {
        let metric = self.metric(of.metric)?;
        let window = self.window(of.window, end)?;
        let Some(place) = of.flow else { return Ok(Quantity { metric, flow: None, window }) };
        let names: Vec<&str> = flows.iter().map(|f| f.id.as_str()).collect();
        match names.iter().position(|n| n == place.get()) {
            Some(index) => Ok(Quantity { metric, flow: Some(index), window }),
            None => {
                let problem = self.complain(place, format!("no flow `{}`", place.get()));
                Err(problem.help(suggestion(place.get(), &names)))
            }
        }
    }

    fn metric(&self, place: &Placed<String>) -> Checked<String> {
        if metrics::find(place.get()).is_some() {
            return Ok(place.get().clone());
        }
        let known: Vec<&str> = METRICS.iter().map(|m| m.id).collect();
        let problem = self.complain(place, format!("no metric `{}`", place.get()));
        Err(problem.help(suggestion(place.get(), &known)))
    }

    fn window(&self, place: &Option<Placed<(Time, Time)>>, end: Time) -> Checked<Window> {
        let Some(place) = place else { return Ok(Window { from: Time::ZERO, to: end }) };
        let (from, to) = *place.get();
        if from >= to || to > end {
            let problem = self.complain(place, "a window is [from, to] within the run");
            return Err(problem.help(format!("the run lasts {}", end - Time::ZERO)));
        }
        Ok(Window { from, to })
    }
}
