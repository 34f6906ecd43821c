//! The link servers by name. To add one: a file in this folder that declares a [`ServerEntry`], and a line in [`SERVERS`].

use super::{line, shared, token_bucket, wifi};
use crate::link::medium_plan::{Batch, MediumPlan};
use crate::link::rate_step::RateStep;
use crate::parameter::{Parameter, Values, registry_entry};
use paceline_units::DataSize;

/// Every server; the first is the default.
pub static SERVERS: &[ServerEntry] = &[line::ENTRY, token_bucket::ENTRY, shared::ENTRY, wifi::ENTRY];

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
    /// The medium that it shares with other hops, if it has a batch.
    pub medium: Option<MediumPlan>,
}

/// A value of a parameter is not valid.
#[derive(Debug)]
pub struct ServerError {
    /// The parameter.
    pub parameter: &'static str,
    /// What is wrong.
    pub message: &'static str,
    /// How to mend it.
    pub hint: &'static str,
}

/// A server with its service.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// The server.
    pub entry: &'static ServerEntry,
    /// Its service.
    pub service: Service,
}

impl Default for ServerPlan {
    /// Returns a line.
    fn default() -> Self {
        Self { entry: &SERVERS[0], service: Service::default() }
    }
}

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
