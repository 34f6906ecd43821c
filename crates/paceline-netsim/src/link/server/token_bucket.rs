//! A token bucket (RFC 2697): as many bytes as it holds may pass at once after a pause, as through a shaper between fast
//! interfaces.

use super::{CapacityNeed, ServerEntry, ServerError, Service};
use crate::link::MTU;
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::DataSize;

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "token-bucket",
    summary: "a burst at once after a pause, then the rate, as through a shaper",
    parameters: &[Parameter::required(
        "burst",
        ParameterKind::Size(MTU, DataSize::from_bytes(u64::MAX)),
        "size of the bucket: as many bytes may pass at once after a pause",
    )],
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
        Ok(Service { burst: Some(burst), ..Service::default() })
    },
};
