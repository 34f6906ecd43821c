// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a 5G cell (or, with other numbers, of an LTE cell) for one device.

use super::{CapacityNeed, ServerEntry, ServerError, Service};
use crate::link::medium::{PATTERN, is_pattern};
use crate::link::medium_plan::{Batch, MediumKind, MediumPlan};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, TimeDelta};

const fn us(least: i64, most: i64) -> ParameterKind {
    ParameterKind::Time(TimeDelta::from_micros(least), TimeDelta::from_micros(most))
}

/// The shortest interval of events, which bounds the work of a slot.
const SHORTEST: TimeDelta = TimeDelta::from_millis(10);

/// Up to an hour.
const LONG: ParameterKind = us(0, 3_600_000_000);

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "nr",
    summary: "one direction of a 5G cell for one device: slots, grants, repeated blocks, blockage, handovers; its capacity is the mean rate \
              of a queue that is never empty, without blockages and handovers",
    parameters: &[
        Parameter::optional("direction", ParameterKind::Text, "up").about("`up`: from the device; `down`: to it"),
        Parameter::new("slot", us(62, 10_000), "0.5 ms").about("slot time (TS 38.211, 4.3.2, spacing of 30 kHz)"),
        Parameter::optional("pattern", ParameterKind::Text, PATTERN).about(
            "slots of one pattern: D for the downlink, U for the uplink, S for a special one, which counts as downlink (TS \
             38.213, 11.1; this is the usual one at 3.5 GHz in Europe)",
        ),
        Parameter::optional("grants", ParameterKind::Text, "request").about(
            "of an uplink: `request`: a device whose queue was empty requests a grant, and one with a backlog reports it (TS 38.321, \
             5.4.4, 5.4.5); `configured`: it may use each slot (5.8.2)",
        ),
        Parameter::new("request_interval", us(1, 1_000_000), "10 ms")
            .about("time between two chances to request a grant (TS 38.331, `SchedulingRequestResourceConfig`; the value is assumed)"),
        Parameter::new("grant_delay", us(0, 1_000_000), "4 ms")
            .about("from a request or report to the slot that it is granted (assumed: 8 slots)"),
        Parameter::new("first_grant", ParameterKind::Size(DataSize::from_bytes(1), DataSize::from_bytes(1_000_000)), "200 B")
            .about("size of the grant after a request, which does not say how much waits (assumed)"),
        Parameter::new("block_error", ParameterKind::Fraction, "10 %")
            .about("probability that a block is not decoded (TS 38.214, 5.2.2.1, the target)"),
        Parameter::new("repeat_delay", us(1, 1_000_000), "5 ms").about("from a block to its repetition (assumed: 10 slots)"),
        Parameter::new("attempts", ParameterKind::Count(1, 255), "4")
            .about("transmissions of a block, after which the layer above sends its packets again (assumed)"),
        Parameter::new("recovery_time", us(0, 10_000_000), "40 ms")
            .about("time until the layer above sends again (TS 38.322, `t-PollRetransmit`; the value is assumed)"),
        Parameter::new("fading", ParameterKind::Number(0.0, 3.0), "0")
            .about("coefficient of variation of the rate, log-normal (assumed: 0.6 for a device that stands, 1.5 in a car)"),
        Parameter::new("fading_time", us(1000, 3_600_000_000), "1 s").about("time in which the fading loses its memory, to 1/e (assumed)"),
        Parameter::new("blockage_interval", LONG, "0 s")
            .about("mean time between two blockages of the beam, exponential; 0 s: none"),
        Parameter::new("blockage_time", LONG, "0.5 s").about("mean length of a blockage, exponential (assumed)"),
        Parameter::new("blockage_rate", ParameterKind::Fraction, "5 %").about("part of the rate in a blockage (assumed)"),
        Parameter::new("handover_interval", LONG, "0 s").about("mean time between two handovers, exponential; 0 s: none"),
        Parameter::new("handover_time", LONG, "40 ms")
            .about("interruption by a handover (median of 19,000 km, \"From LTE to 5G for Connected Mobility\")"),
    ],
    implied_by: None,
    needs: CapacityNeed::Rates("a cell needs a capacity of rates"),
    build: |values| {
        let error = |parameter, message, hint| Err(ServerError { parameter, message, hint });
        if !matches!(values.text("direction"), None | Some("up" | "down")) {
            return error("direction", "unknown direction", "`up` and `down` are allowed");
        }
        if !matches!(values.text("grants"), None | Some("request" | "configured")) {
            return error("grants", "unknown kind of grants", "`request` and `configured` are allowed");
        }
        if !is_pattern(values.text("pattern").unwrap_or(PATTERN)) {
            let hint = "write one letter for each slot, such as \"DDDSU\", with both directions";
            return error("pattern", "a pattern has the letters D, S and U", hint);
        }
        if values.fraction("block_error").get() > 0.9 {
            return error("block_error", "at most 90 % of blocks may fail", "a cell aims at 10 %");
        }
        for parameter in ["blockage_interval", "handover_interval"] {
            if (TimeDelta::from_nanos(1)..SHORTEST).contains(&values.time(parameter)) {
                return error(parameter, "an interval is at least 10 ms", "0 s means none");
            }
        }
        let medium = MediumPlan { name: String::new(), kind: MediumKind::Cell, values: values.clone() };
        Ok(Service { batch: Some(Batch::SINGLE), medium: Some(medium), ..Service::default() })
    },
};
