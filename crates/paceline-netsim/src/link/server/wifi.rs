//! A queue of a station on a Wi-Fi channel.

use super::{CapacityNeed, ServerEntry, ServerError, Service};
use crate::link::medium_plan::{Batch, MediumKind, MediumPlan, Order};
use crate::parameter::{Parameter, ParameterKind, Value};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

const fn us(t: i64) -> TimeDelta {
    TimeDelta::from_micros(t)
}

const fn time(
    name: &'static str,
    (least, most): (i64, i64),
    (default, text): (i64, &'static str),
    description: &'static str,
) -> Parameter {
    Parameter::new(name, ParameterKind::Time(us(least), us(most)), (Value::Time(us(default)), text), description)
}

const fn count(
    name: &'static str,
    (least, most): (u32, u32),
    (default, text): (u32, &'static str),
    description: &'static str,
) -> Parameter {
    Parameter::new(name, ParameterKind::Count(least, most), (Value::Count(default), text), description)
}

const fn size(
    name: &'static str,
    (least, most): (u64, u64),
    (default, text): (u64, &'static str),
    description: &'static str,
) -> Parameter {
    let kind = ParameterKind::Size(DataSize::from_bytes(least), DataSize::from_bytes(most));
    Parameter::new(name, kind, (Value::Size(DataSize::from_bytes(default)), text), description)
}

const fn rate(name: &'static str, (kbps, text): (u64, &'static str), description: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Rate, (Value::Rate(Rate::from_kbps(kbps)), text), description)
}

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "wifi",
    summary: "a queue of a station that contends for a Wi-Fi channel (IEEE 802.11 DCF); its capacity is the PHY rate",
    parameters: &[
        Parameter::required("medium", ParameterKind::Text, "name of the Wi-Fi channel that it shares with other hops"),
        Parameter::optional(
            "station",
            ParameterKind::Text,
            "a station of its own",
            "name of the station that sends; hops of one station, such as those of an access point, contend as one",
        ),
        Parameter::optional(
            "order",
            ParameterKind::Text,
            "round-robin",
            "the order in which a station serves its hops: `round-robin`: a frame of each in turn, as from a queue per \
             receiver; `arrival`: the hop whose first packet arrived first, as from one queue",
        ),
        time("slot", (1, 1000), (9, "9 us"), "slot time (IEEE 802.11-2020, table 17-21, 20 MHz)"),
        time("sifs", (1, 1000), (16, "16 us"), "short interframe space (IEEE 802.11-2020, table 17-21, 20 MHz)"),
        count(
            "aifsn",
            (1, 15),
            (3, "3"),
            "slots after `sifs` before the backoff counts (IEEE 802.11-2020, table 9-155, best effort; 2 is DIFS)",
        ),
        count(
            "cw_min",
            (0, 32_767),
            (15, "15"),
            "smallest contention window, slots (IEEE 802.11-2020, table 9-155, best effort)",
        ),
        count(
            "cw_max",
            (0, 32_767),
            (1023, "1023"),
            "largest contention window, slots (IEEE 802.11-2020, table 9-155, best effort)",
        ),
        time(
            "preamble",
            (0, 10_000),
            (40, "40 us"),
            "preamble and PHY header of a data frame (IEEE 802.11-2020, 19.3.2, mixed format, two streams)",
        ),
        time(
            "symbol",
            (0, 1000),
            (4, "4 us"),
            "symbol of OFDM, to which frames are rounded up (IEEE 802.11-2020, table 19-6); 0 us: not OFDM",
        ),
        size(
            "header",
            (0, 1000),
            (38, "38 B"),
            "what the MAC adds to a packet: QoS header, frame check sequence, LLC and SNAP (IEEE 802.11-2020, 9.2.3)",
        ),
        time(
            "ack_preamble",
            (0, 10_000),
            (20, "20 us"),
            "preamble and PHY header of an acknowledgement (IEEE 802.11-2020, 17.3.2, not HT)",
        ),
        rate(
            "ack_rate",
            (24_000, "24 Mbps"),
            "rate of acknowledgements (IEEE 802.11-2020, 17.4.3, the highest mandatory one)",
        ),
        count(
            "ampdu_packets",
            (1, 64),
            (64, "64"),
            "most packets of a frame (IEEE 802.11-2020, 9.3.1.8.2, bitmap of the block ACK); 1: no aggregation",
        ),
        size(
            "ampdu_size",
            (1, 10_000_000),
            (65_535, "65535 B"),
            "most bytes of a frame with several packets (IEEE 802.11-2020, table 19-25, HT)",
        ),
        time(
            "ampdu_time",
            (1, 10_000),
            (5484, "5484 us"),
            "longest airtime of a frame with several packets (IEEE 802.11-2020, table 19-25, aPPDUMaxTime)",
        ),
        count(
            "attempts",
            (1, 255),
            (7, "7"),
            "transmissions of a packet, after which it is lost (IEEE 802.11-2020, dot11ShortRetryLimit)",
        ),
        count(
            "full_rate_attempts",
            (1, 255),
            (2, "2"),
            "transmissions in a row without acknowledgement at the full rate; each further one has half of the rate \
             before and no frame errors (assumed)",
        ),
        rate(
            "lowest_rate",
            (6500, "6.5 Mbps"),
            "lowest rate after failures (IEEE 802.11-2020, table 19-27, MCS 0, 20 MHz)",
        ),
        Parameter::new(
            "frame_error",
            ParameterKind::Fraction,
            (Value::Fraction(Fraction::ZERO), "0 %"),
            "probability that a packet at the full rate arrives with errors, for each packet of a frame (assumed)",
        ),
    ],
    implied_by: None,
    needs: CapacityNeed::Rates("a Wi-Fi station needs a capacity of rates, its PHY rate"),
    build: |values| {
        if values.count("cw_min") > values.count("cw_max") {
            return Err(ServerError {
                parameter: "cw_min",
                message: "`cw_min` must not be above `cw_max`",
                hint: "best effort has 15 and 1023 (IEEE 802.11-2020, table 9-155)",
            });
        }
        for parameter in ["ack_rate", "lowest_rate"] {
            if values.rate(parameter).is_zero() {
                let hint = "leave the key out for its default";
                return Err(ServerError { parameter, message: "this rate must be > 0", hint });
            }
        }
        if values.text("order").is_some_and(|name| Order::named(name).is_none()) {
            return Err(ServerError {
                parameter: "order",
                message: "unknown order of hops",
                hint: "`round-robin` and `arrival` are allowed",
            });
        }
        let name = values.text("medium").map(str::to_owned);
        let medium = name.map(|name| MediumPlan { name, kind: MediumKind::Wifi, values: values.clone() });
        Ok(Service { batch: Some(Batch::of_frame(values)), medium, ..Service::default() })
    },
};
