//! A server that shares its medium with other links, such as the other direction of a half-duplex radio: one of them
//! transmits at a time, in turns of one packet.

use super::{CapacityNeed, ServerEntry, Service};
use crate::link::medium_plan::{Batch, MediumKind, MediumPlan};
use crate::parameter::{Parameter, ParameterKind};

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "shared",
    summary: "one packet per turn on a medium that hops share, such as a half-duplex radio",
    parameters: &[Parameter::required(
        "medium",
        ParameterKind::Text,
        "name of a medium that it shares with every other hop that gives this name, such as the other direction of a \
         half-duplex radio: one of them transmits at a time, in turns of one packet",
    )],
    implied_by: Some("medium"),
    needs: CapacityNeed::Rates("a shared medium needs a capacity of rates"),
    build: |values| {
        let name = values.text("medium").map(str::to_owned);
        let medium = name.map(|name| MediumPlan { name, kind: MediumKind::HalfDuplex, values: values.clone() });
        Ok(Service { batch: Some(Batch::SINGLE), medium, ..Service::default() })
    },
};
