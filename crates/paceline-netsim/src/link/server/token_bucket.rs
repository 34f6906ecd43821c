//! A token bucket (RFC 2697): as many bytes as it holds may pass at once after a pause, as through a shaper between fast
//! interfaces.

use super::{CapacityNeed, ServerEntry, ServerError, Service};
use crate::link::MTU;
use crate::link::rate_step::RateStep;
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::DataSize;

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "token-bucket",
    summary: "a burst at once after a pause, then the rate, as through a shaper",
    parameters: &[
        Parameter::required(
            "burst",
            ParameterKind::Size(MTU, DataSize::from_bytes(u64::MAX)),
            "size of the bucket: as many bytes may pass at once after a pause",
        ),
        Parameter::optional(
            "rate_step",
            ParameterKind::Text,
            "keep",
            "what a change of the rate does: `keep`: tokens and queue stay; `change`: the bucket is full and the queue stays, \
             as after `tc qdisc change` of a tbf; `delete-add`: the bucket is full and the queue is lost, as after `tc qdisc \
             del` and `add`",
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
