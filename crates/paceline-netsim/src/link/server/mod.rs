// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link servers: how a link transmits the packets that its queue releases.
//!
//! To add one: a [`ServerEntry`], in a file here if it is long, and a line in [`SERVERS`]. A server describes its service
//! ([`Service`]); [`Link`](super::Link) computes the times.

mod cell;
mod wifi;

use super::MTU;
use super::medium_plan::{Batch, MediumKind, MediumPlan};
use super::rate_step::RateStep;
use crate::parameter::{Parameter, ParameterKind, Values, registry_entry};
use paceline_units::DataSize;

/// Every server; the first is the default.
pub static SERVERS: &[ServerEntry] = &[LINE, TOKEN_BUCKET, SHARED, wifi::ENTRY, cell::ENTRY];

/// A server: its name, its parameters, and how to create its service.
pub struct ServerEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    /// The parameters, which are keys of a hop.
    pub parameters: &'static [Parameter],
    /// The parameter by which a scenario may choose the server without its name. Such a server checks the ranges of its
    /// parameters when it is created.
    pub implied_by: Option<&'static str>,
    /// The capacity that the hop must have.
    pub needs: CapacityNeed,
    /// Creates the service.
    pub build: fn(&Values) -> Result<Service, ServerError>,
}

registry_entry!(
    ServerEntry,
    SERVERS,
    "kind",
    "link server",
    fn implied_by(&self) -> Option<&'static str> {
        self.implied_by
    },
    fn checks_ranges(&self) -> bool {
        self.implied_by.is_none()
    }
);

/// A requirement on the capacity of a hop, with the message if it is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityNeed {
    /// Any, also unlimited.
    Any,
    /// Rates, constant, stepped or recorded, but not recorded opportunities.
    Rates(&'static str),
    /// Rates that the scenario states, not a recorded trace.
    WrittenRates(&'static str),
}

/// How a link serves packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Size of a token bucket that replaces serial transmission.
    pub burst: Option<DataSize>,
    /// What a change of the rate does to the token bucket and the queue.
    pub rate_step: RateStep,
    /// What it transmits in one turn on a shared medium; `None` for a server of its own.
    pub batch: Option<Batch>,
    /// The medium on which it transmits, if it has a batch.
    pub medium: Option<MediumPlan>,
}

impl Service {
    /// Returns the medium, if other hops may share it.
    pub fn shared_medium(&self) -> Option<&MediumPlan> {
        self.medium.as_ref().filter(|medium| !medium.name.is_empty())
    }
}

/// A value of a parameter is not valid.
#[derive(Debug)]
pub struct ServerError {
    pub parameter: &'static str,
    /// What is wrong.
    pub message: &'static str,
    /// How to mend it.
    pub hint: &'static str,
}

/// A server with its service.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    pub entry: &'static ServerEntry,
    pub service: Service,
}

impl Default for ServerPlan {
    /// Returns a line.
    fn default() -> Self {
        Self { entry: &SERVERS[0], service: Service::default() }
    }
}

/// A line: one packet after the other, each for its serialisation time.
const LINE: ServerEntry = ServerEntry {
    name: "line",
    summary: "one packet after the other, each for its own time",
    parameters: &[],
    implied_by: None,
    needs: CapacityNeed::Any,
    build: |_| Ok(Service::default()),
};

/// A token bucket (RFC 2697): as many bytes as it holds may pass at once after a pause, as through a shaper between fast
/// interfaces.
const TOKEN_BUCKET: ServerEntry = ServerEntry {
    name: "token-bucket",
    summary: "a burst at once after a pause, then the rate, as through a shaper",
    parameters: &[
        Parameter::required("burst", ParameterKind::Size(MTU, DataSize::from_bytes(u64::MAX)))
            .about("size of the bucket: as many bytes may pass at once after a pause"),
        Parameter::optional("rate_step", ParameterKind::Text, "keep").about(
            "what a change of the rate does: `keep`: tokens and queue stay; `change`: the bucket is full and the queue \
             stays, as after `tc qdisc change` of a tbf; `delete-add`: the bucket is full and the queue is lost, as \
             after `tc qdisc del` and `add`",
        ),
    ],
    implied_by: Some("burst"),
    needs: CapacityNeed::WrittenRates("a token bucket needs a capacity that is a rate"),
    build: |values| {
        let burst = values.size("burst");
        if burst < MTU {
            return Err(ServerError {
                parameter: "burst",
                message: "a token bucket must hold at least one packet of 1500 bytes",
                hint: "leave the key out for a line, on which every packet takes its own time",
            });
        }
        let Some(rate_step) = RateStep::named(values.text("rate_step").unwrap_or(RateStep::NAMES[0])) else {
            return Err(ServerError {
                parameter: "rate_step",
                message: "unknown way to change the rate",
                hint: "`keep`, `change` and `delete-add` are allowed",
            });
        };
        Ok(Service { burst: Some(burst), rate_step, ..Service::default() })
    },
};

/// A server that shares its medium with other links, such as the other direction of a half-duplex radio: one of them
/// transmits at a time, in turns of one packet.
const SHARED: ServerEntry = ServerEntry {
    name: "shared",
    summary: "one packet per turn on a medium that hops share, such as a half-duplex radio",
    parameters: &[Parameter::required("medium", ParameterKind::Text).about(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{ParameterKind, RegistryEntry, Value, check_registry};

    #[test]
    fn names_are_unique_and_each_server_describes_its_service() {
        check_registry::<ServerEntry>();
        assert_eq!(SERVERS[0].implied_by, None, "the default needs no key");
    }

    fn service(name: &str, burst: u64) -> Result<Service, ServerError> {
        let entry = ServerEntry::find(name).unwrap();
        let sizes = entry.parameters.iter().filter(|p| matches!(p.kind, ParameterKind::Size(..)));
        let given: Vec<(&str, Value)> = sizes.map(|p| (p.name, Value::Size(DataSize::from_bytes(burst)))).collect();
        let values = Values::new(entry.parameters, &given).with_texts(vec![("medium", "air".to_owned())]);
        (entry.build)(&values)
    }

    #[test]
    fn services_have_the_values_of_the_parameters() {
        assert_eq!(service("line", 0).unwrap(), Service::default());
        let bucket = service("token-bucket", 1500).unwrap();
        assert_eq!((bucket.burst, bucket.batch, bucket.medium), (Some(DataSize::from_bytes(1500)), None, None));
        assert_eq!(service("token-bucket", 1499).unwrap_err().parameter, "burst");
        let shared = service("shared", 0).unwrap();
        let medium =
            |service: &Service| service.medium.as_ref().map(|medium| (medium.name.clone(), medium.kind.name()));
        assert_eq!((shared.batch, medium(&shared)), (Some(Batch::SINGLE), Some(("air".to_owned(), "half-duplex"))));
        let wifi = service("wifi", 15_000).unwrap();
        assert_eq!(medium(&wifi), Some(("air".to_owned(), "wifi")));
        assert_eq!(wifi.batch.map(|batch| (batch.packets, batch.bytes)), Some((64, DataSize::from_bytes(15_000))));
    }
}
