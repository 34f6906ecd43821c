// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of coupled flows (RFC 8699).

use super::{Checked, Resolver};
use crate::file::{Flow, MediaKeys};
use paceline::Coupling;
use paceline_netsim::plan::{CouplingPlan, FlowPlan};

impl Resolver<'_> {
    /// Returns the membership of a flow in a group. `couples` states whether its controller supports it.
    pub(super) fn coupling(&self, media: &MediaKeys, couples: bool) -> Checked<Option<CouplingPlan>> {
        let (Some(spanned), Some(controller)) = (&media.coupling, &media.controller) else { return Ok(None) };
        let table = spanned.get();
        self.name(&table.group)?;
        let priority = self.priority(&table.priority)?;
        if !couples {
            let known: Vec<_> =
                self.registry.iter().filter(|entry| entry.couples()).map(|entry| entry.name()).collect();
            let message = format!("flows under `{}` cannot be coupled", controller.get());
            let help = format!(
                "leave `coupling` out, or choose a controller that calculates its rate at the sender and has no window: {}",
                known.join(", ")
            );
            return self.fail(controller, message, help);
        }
        let algorithm = self.named(&table.algorithm, "algorithm of coupling", &Coupling::NAMES)?;
        Ok(Some(CouplingPlan { group: table.group.get().clone(), priority, algorithm }))
    }

    /// Checks that the flows of each group have one sender and one algorithm, and notes a group of one flow.
    pub(super) fn check_groups(&mut self, tables: &[Flow], flows: &[FlowPlan]) -> Checked<()> {
        let coupling = |flow: &FlowPlan| flow.media().and_then(|media| media.coupling.clone());
        for table in tables {
            let Some(spanned) = &table.media.get().coupling else { continue };
            let group = spanned.get().group.get();
            let of_group = |flow: &&FlowPlan| coupling(flow).is_some_and(|coupling| coupling.group == *group);
            let members: Vec<&FlowPlan> = flows.iter().filter(of_group).collect();
            let [first, others @ ..] = &members[..] else { continue };
            if others.iter().any(|flow| flow.direction != first.direction) {
                let help = "coupling works at one sender: give the flows of the other direction a group of their own";
                return self.fail(spanned, format!("the flows of the group `{group}` have two directions"), help);
            }
            let algorithm = |flow: &FlowPlan| coupling(flow).map(|coupling| coupling.algorithm);
            if others.iter().any(|flow| algorithm(flow) != algorithm(first)) {
                let help = "write the same `algorithm` in each of its flows (RFC 8699, section 5.3)";
                return self.fail(spanned, format!("the flows of the group `{group}` have two algorithms"), help);
            }
            if others.is_empty() {
                self.notes.push(format!("{}: no other flow is in its group `{group}`, so it is not coupled", first.id));
            }
        }
        Ok(())
    }
}
