// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published values and bounds: those of this case, their quantities, and the references of ratios.

use super::{Checked, Resolver};
use crate::case::known;
use crate::error::suggestion;
use crate::evaluation::{Assert, Each, Expect, IncludeIf, Quantity, Reference, Remark, Window, renamed_metric};
use crate::file::{IncludeIfTable, QuantityKeys, ScenarioFile};
use crate::overrides::Override;
use crate::text_span::{HasTextSpan, Spanned};
use paceline_netsim::plan::{FlowPlan, HopPlan};
use paceline_netsim::records::{Label, MetricCatalogue, Statistic};
use paceline_units::Time;
use std::collections::BTreeMap;

/// The published values and bounds of one case.
#[derive(Default)]
pub(super) struct Expectations {
    pub expects: Vec<Expect>,
    pub asserts: Vec<Assert>,
    pub references: BTreeMap<usize, Quantity>,
    /// The number of the values and bounds in the file that need another case.
    pub other_case_count: usize,
    /// The number of those that end after a run that `--set` made shorter.
    pub after_end_count: usize,
}

/// The keys of a table that select a quantity.
#[derive(Clone, Copy)]
struct Selection<'a> {
    metric: &'a Spanned<String>,
    flow: &'a Option<Spanned<String>>,
    stream: &'a Option<Spanned<String>>,
    window: &'a Option<Spanned<(Time, Time)>>,
}

impl<'a> Selection<'a> {
    fn of(keys: &'a QuantityKeys) -> Self {
        Self { metric: &keys.metric, flow: &keys.flow, stream: &keys.stream, window: &keys.window }
    }
}

/// The case whose quantities are resolved.
pub(super) struct Scope<'a> {
    pub file: &'a ScenarioFile,
    pub case: &'a Label,
    pub flows: &'a [FlowPlan],
    pub hops: &'a [HopPlan],
    pub end: Time,
    /// Whether `--set` changes the duration; values after the end are then left out.
    pub shortened: bool,
}

impl Scope<'_> {
    fn ends_after_run(&self, window: &Option<Spanned<(Time, Time)>>) -> bool {
        self.shortened && window.as_ref().is_some_and(|w| w.get().1 > self.end)
    }
}

const IN_UNIT: &str = "write it in the metric's unit; `paceline list metrics` shows units";

impl Resolver<'_> {
    pub(super) fn expectations(&self, scope: &Scope<'_>) -> Checked<Expectations> {
        let mut found = Expectations::default();
        let ids: Vec<&str> = scope.file.assert.iter().map(|a| a.id.as_str()).collect();
        for (key, e) in scope.file.expect.iter().enumerate() {
            let keys = e.quantity.get();
            if !e.published.get().is_finite() {
                return self.fail(&e.published, "a published value must be a finite number", IN_UNIT);
            }
            let tolerance = match (&e.tolerance, &e.why) {
                (Some(spanned), _) if !(spanned.get().is_finite() && *spanned.get() > 0.0) => {
                    return self.fail(spanned, "tolerance must be above 0", IN_UNIT);
                }
                (Some(spanned), why) if why.as_ref().is_none_or(|w| w.get().trim().is_empty()) => {
                    let help = "add why = \"…\", or leave the tolerance out for the usual one";
                    return self.fail(spanned, "a tolerance other than the usual one needs a reason", help);
                }
                (None, Some(why)) => {
                    let help = "add tolerance = …; other remarks belong into `note`";
                    return self.fail(why, "`why` is the reason for a tolerance, and there is none", help);
                }
                (tolerance, _) => tolerance.as_ref().map(|t| *t.get()),
            };
            if let Some(claim) = e.claim.as_ref().filter(|c| !ids.contains(&c.get().as_str())) {
                let message = format!("no [[assert]] has the id `{}`", claim.get());
                return self.fail(claim, message, suggestion(claim.get(), &ids));
            }
            let remark = self.remark(keys)?;
            let Some(relative_to) = self.relative_to(scope, keys, key, &mut found)? else { continue };
            found.expects.push(Expect {
                quantity: self.quantity(scope, Selection::of(keys))?,
                relative_to,
                published: *e.published.get(),
                tolerance,
                claim: e.claim.as_ref().map(|c| c.get().clone()),
                fitted: keys.fitted.clone(),
                remark,
                index: key,
            });
        }
        for (index, a) in scope.file.assert.iter().enumerate() {
            let keys = a.quantity.get();
            let bounds = *a.bounds.get();
            if bounds.0.is_nan() || bounds.1.is_nan() || bounds.0 > bounds.1 {
                let help = match bounds.0 > bounds.1 {
                    true => format!("write [{:?}, {:?}]", bounds.1, bounds.0),
                    false => "-inf and inf are no bound".to_owned(),
                };
                return self.fail(&a.bounds, "bounds must be [lowest, highest]", help);
            }
            let remark = self.remark(keys)?;
            let key = scope.file.expect.len() + index;
            let Some(relative_to) = self.relative_to(scope, keys, key, &mut found)? else { continue };
            let mut quantity = self.quantity(scope, Selection::of(keys))?;
            let (bounds, relative_to) = match &a.each {
                Some(each) => {
                    let share = self.share_of_windows(&a.share)?;
                    let place = keys.relative_to.as_ref().map_or(each.text_span(), HasTextSpan::text_span);
                    let relative_to = self.same_window(&place, &quantity, relative_to)?;
                    let (of, windows) = self.windows_of_each(each, scope, &quantity)?;
                    quantity.each = Some(Each { of, windows, bounds, relative_to });
                    ((share, 1.0), None)
                }
                None => {
                    if let Some(share) = &a.share {
                        return self.fail(share, "`share` is a share of the windows of `each`", "add each = \"1 s\"");
                    }
                    (bounds, relative_to)
                }
            };
            let runs = self.named(&a.runs, "statistic of several runs", &Statistic::NAMES)?;
            let why = a.why.as_ref().map(|why| why.get().clone());
            found.asserts.push(Assert {
                id: a.id.clone(),
                quantity,
                relative_to,
                runs,
                bounds,
                why,
                fitted: keys.fitted.clone(),
                remark,
                index: key,
            });
        }
        Ok(found)
    }

    /// Returns the reference of a quantity in this case, if it has one; none if the quantity does not belong to this case.
    /// The references that quantities of other cases take from this case are put into `found`.
    fn relative_to(
        &self,
        scope: &Scope<'_>,
        keys: &QuantityKeys,
        key: usize,
        found: &mut Expectations,
    ) -> Checked<Option<Option<Reference>>> {
        let of = Selection::of(keys);
        self.metric(of.metric)?;
        if let Some(spanned) = &keys.case {
            self.some_case(scope.file, spanned)?;
        }
        let all = Label::default();
        let pattern = keys.case.as_ref().map_or(&all, Spanned::get);
        let belongs = scope.case.matches(pattern);
        let table = keys.relative_to.as_ref();
        if !belongs {
            found.other_case_count += 1;
        } else if scope.ends_after_run(of.window)
            || table.is_some_and(|table| scope.ends_after_run(&table.get().window))
        {
            found.after_end_count += 1;
            return Ok(None);
        }
        let Some(spanned) = table else { return Ok(belongs.then_some(None)) };
        let table = spanned.get();
        let of = Selection {
            metric: table.metric.as_ref().unwrap_or(of.metric),
            flow: if table.flow.is_some() { &table.flow } else { of.flow },
            stream: if table.flow.is_some() || table.stream.is_some() { &table.stream } else { of.stream },
            window: if table.window.is_some() { &table.window } else { of.window },
        };
        self.metric(of.metric)?;
        let Some(case) = &table.case else {
            let differs =
                table.metric.is_some() || table.flow.is_some() || table.stream.is_some() || table.window.is_some();
            if !differs {
                let help = "write in what it differs: `case`, `metric`, `flow`, `stream` or `window`";
                return self.fail(spanned, "the reference is the value itself", help);
            }
            let quantity = belongs.then(|| self.quantity(scope, of)).transpose()?;
            return Ok(quantity.map(Reference::SameRun).map(Some));
        };
        self.some_case(scope.file, case)?;
        let labels = scope.file.case.iter().map(|c| c.label.get());
        for own in labels.filter(|l| l.matches(pattern)) {
            let reference = self.reference(scope.file, own, case)?;
            if reference == scope.case && !scope.ends_after_run(of.window) {
                found.references.insert(key, self.quantity(scope, of)?);
            }
        }
        if !belongs {
            return Ok(None);
        }
        found.other_case_count += 1;
        if scope.case.is_empty() {
            return Ok(None); // the scenario as it is written is no case
        }
        let case = self.reference(scope.file, scope.case, case)?.clone();
        Ok(Some(Some(Reference::OtherCase { case, key })))
    }

    /// Returns the case by which a value of the case `own` is divided.
    fn reference<'a>(&self, file: &'a ScenarioFile, own: &Label, other: &Spanned<Label>) -> Checked<&'a Label> {
        let wanted = own.with(other.get());
        let message = match file.case.iter().map(|c| c.label.get()).find(|l| **l == wanted) {
            Some(label) if label != own => return Ok(label),
            Some(_) => format!("`{own}` would be divided by itself"),
            None => format!("for `{own}` this is `{wanted}`, and there is no such case"),
        };
        self.fail(other, message, known(&file.case))
    }

    fn some_case(&self, file: &ScenarioFile, spanned: &Spanned<Label>) -> Checked<()> {
        match file.case.iter().any(|c| c.label.get().matches(spanned.get())) {
            true => Ok(()),
            false => self.fail(spanned, format!("no case matches `{}`", spanned.get()), known(&file.case)),
        }
    }

    fn remark(&self, keys: &QuantityKeys) -> Checked<Remark> {
        for spanned in &keys.reproduced_with {
            if let Err(message) = spanned.get().parse::<Override>() {
                return self.fail(spanned, message, "write it as after --set: \"flow.video.encoder.max=1Mbps\"");
            }
        }
        let reproduced_with = keys.reproduced_with.iter().map(|change| change.get().clone()).collect();
        Ok(Remark { note: keys.note.clone(), reproduced_with })
    }

    /// Returns the condition under which a run counts.
    pub(super) fn include_if(
        &self,
        spanned: &Spanned<IncludeIfTable>,
        flows: &[FlowPlan],
        end: Time,
    ) -> Checked<IncludeIf> {
        let IncludeIfTable { metric, flow, at_least, note } = spanned.get();
        if !at_least.get().is_finite() {
            return self.fail(at_least, "at_least must be a finite number", "write it like 1");
        }
        let quantity = self.quantity_of(Selection { metric, flow, stream: &None, window: &None }, flows, end)?;
        Ok(IncludeIf { quantity, at_least: *at_least.get(), note: note.clone() })
    }

    fn quantity(&self, scope: &Scope<'_>, of: Selection<'_>) -> Checked<Quantity> {
        self.quantity_of(of, scope.flows, scope.end)
    }

    fn quantity_of(&self, of: Selection<'_>, flows: &[FlowPlan], end: Time) -> Checked<Quantity> {
        let metric = self.metric(of.metric)?;
        let window = self.window(of.window, end)?;
        let Some(spanned) = of.flow else {
            return match of.stream {
                Some(stream) => {
                    self.fail(stream, "a stream is a part of a flow", "add flow = \"…\", the id of its flow")
                }
                None => Ok(Quantity::new(metric, None, window)),
            };
        };
        let names: Vec<&str> = flows.iter().map(|f| f.id.as_str()).collect();
        let flow = self.position(spanned, "flow", &names)?;
        let stream = of.stream.as_ref().map(|stream| self.stream_index(stream, of.metric, &flows[flow])).transpose()?;
        Ok(Quantity { stream, ..Quantity::new(metric, Some(flow), window) })
    }

    /// Returns the number of a stream in its flow, if the metric has values of streams.
    fn stream_index(&self, spanned: &Spanned<String>, metric: &Spanned<String>, flow: &FlowPlan) -> Checked<usize> {
        let of_streams = |metrics: MetricCatalogue| metrics.iter().filter(|m| m.of_streams).map(|m| m.id);
        if let Some(metrics) = self.metrics.filter(|metrics| !of_streams(*metrics).any(|id| id == metric.get())) {
            let help = format!("metrics of streams are {}", of_streams(metrics).collect::<Vec<_>>().join(", "));
            return self.fail(metric, format!("`{}` has no values of single streams", metric.get()), help);
        }
        let streams = flow.media().map_or(&[][..], |media| &media.streams);
        let names: Vec<&str> = streams.iter().map(|stream| stream.id.as_str()).collect();
        self.position(spanned, "stream", &names)
    }

    fn metric(&self, spanned: &Spanned<String>) -> Checked<String> {
        let id = spanned.get();
        let Some(metrics) = self.metrics.filter(|metrics| metrics.get(id).is_none()) else { return Ok(id.clone()) };
        match renamed_metric(id) {
            Some(new) => self.fail(spanned, format!("no metric `{id}`"), format!("`{id}` is called `{new}` now")),
            None => self.unknown(spanned, "metric", &metrics.iter().map(|m| m.id).collect::<Vec<_>>()),
        }
    }

    fn window(&self, spanned: &Option<Spanned<(Time, Time)>>, end: Time) -> Checked<Window> {
        let Some(spanned) = spanned else { return Ok(Window { from: Time::ZERO, to: end }) };
        let (from, to) = *spanned.get();
        if from >= to || to > end {
            let help = format!("the run lasts {}", end - Time::ZERO);
            return self.fail(spanned, "a window must be [from, to] within the run", help);
        }
        Ok(Window { from, to })
    }
}
