// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds in each of several windows: `each`, `share`, and their references.

use super::expect::Scope;
use super::{Checked, Resolver};
use crate::evaluation::{EachOf, Quantity, Reference, Window};
use crate::text_span::{Spanned, TextSpan};
use paceline_netsim::plan::HopPlan;
use paceline_units::{Time, TimeDelta};

/// More windows cost more time than the run.
const WINDOWS_MAX: usize = 3600;
/// A capacity of single transmissions is averaged over this time.
const BIN: TimeDelta = TimeDelta::from_secs(1);
const HELP: &str = "write a duration such as \"1 s\", or \"change\" for the windows between changes of the path";

impl Resolver<'_> {
    /// Returns the lowest allowed share of windows.
    pub(super) fn share_of_windows(&self, share: &Option<Spanned<f64>>) -> Checked<f64> {
        let error = ("a share must be from 0 to 1", "write it like 0.95");
        Ok(self.valid(share, |share| (0.0..=1.0).contains(share), error)?.unwrap_or(1.0))
    }

    /// Returns the quantity by which the metric is divided in each window.
    pub(super) fn same_window(
        &self,
        place: &TextSpan,
        quantity: &Quantity,
        relative_to: Option<Reference>,
    ) -> Checked<Option<Box<Quantity>>> {
        match relative_to {
            None => Ok(None),
            Some(Reference::SameRun(of)) if of.window == quantity.window => Ok(Some(Box::new(of))),
            Some(_) => {
                let message = "with `each`, a reference is measured in the same windows of the same run";
                self.fail(place, message, "leave `case` and `window` out of `relative_to`")
            }
        }
    }

    /// Returns the windows of a bound within the window of its quantity.
    pub(super) fn windows_of_each(
        &self,
        each: &Spanned<String>,
        scope: &Scope<'_>,
        quantity: &Quantity,
    ) -> Checked<(EachOf, Vec<Window>)> {
        let Window { from, to } = quantity.window;
        let (of, windows) = match each.get().as_str() {
            "change" => {
                let route = quantity.flow.map(|flow| &scope.flows[flow].route);
                let hops = scope.hops.iter().enumerate();
                let on_route = hops.filter(|(index, _)| route.is_none_or(|route| route.contains(index)));
                let mut borders: Vec<Time> = on_route.flat_map(|(_, hop)| changes(hop, scope.end)).collect();
                borders.retain(|at| from < *at && *at < to);
                borders.extend([from, to]);
                borders.sort_unstable();
                borders.dedup();
                let windows = borders.windows(2).map(|pair| Window { from: pair[0], to: pair[1] });
                (EachOf::Change, windows.collect::<Vec<_>>())
            }
            text => {
                let Ok(length) = text.parse::<TimeDelta>() else {
                    return self.fail(each, "`each` must be a duration or \"change\"", HELP);
                };
                if length <= TimeDelta::ZERO || length > to - from {
                    let help = format!("the span of the bound lasts {}", to - from);
                    return self.fail(each, "`each` must be above 0 and at most the span of the bound", help);
                }
                let count = ((to - from).as_nanos() / length.as_nanos()) as usize;
                let window = |n: usize| {
                    let at = from + length * n as i64;
                    Window { from: at, to: at + length }
                };
                (EachOf::Length(length), (0..count.min(WINDOWS_MAX + 1)).map(window).collect())
            }
        };
        if windows.len() > WINDOWS_MAX {
            let message = format!("more than {WINDOWS_MAX} windows");
            return self.fail(each, message, "write a longer `each`, or a shorter `window`");
        }
        Ok((of, windows))
    }
}

/// Returns the times at which the capacity or the delay of a hop changes until `end`.
fn changes(hop: &HopPlan, end: Time) -> impl Iterator<Item = Time> {
    let capacity = hop.capacity.iter().flat_map(move |capacity| capacity.steps(end, BIN));
    let delay = hop.delay.points().iter().map(|(at, _)| *at);
    capacity.map(|(at, _)| at).chain(delay)
}
