// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue of a station on a Wi-Fi channel.

use super::{CapacityNeed, ServerEntry, ServerError, Service};
use crate::link::medium_plan::{Batch, MediumKind, MediumPlan, Order};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{DataSize, TimeDelta};

const fn us(least: i64, most: i64) -> ParameterKind {
    ParameterKind::Time(TimeDelta::from_micros(least), TimeDelta::from_micros(most))
}

const fn bytes(least: u64, most: u64) -> ParameterKind {
    ParameterKind::Size(DataSize::from_bytes(least), DataSize::from_bytes(most))
}

pub(super) const ENTRY: ServerEntry = ServerEntry {
    name: "wifi",
    summary: "a queue of a station that contends for a Wi-Fi channel (IEEE 802.11 DCF); its capacity is the PHY rate",
    parameters: &[
        Parameter::required("medium", ParameterKind::Text)
            .about("name of the Wi-Fi channel that it shares with other hops"),
        Parameter::optional("station", ParameterKind::Text, "a station of its own").about(
            "name of the station that sends; hops of one station, such as those of an access point, contend as one",
        ),
        Parameter::optional("order", ParameterKind::Text, "round-robin").about(
            "the order in which a station serves its hops: `round-robin`: a frame of each in turn, as from a queue per \
             receiver; `arrival`: the hop whose first packet arrived first, as from one queue",
        ),
        Parameter::new("slot", us(1, 1000), "9 us").about("slot time (IEEE 802.11-2020, table 17-21, 20 MHz)"),
        Parameter::new("sifs", us(1, 1000), "16 us")
            .about("short interframe space (IEEE 802.11-2020, table 17-21, 20 MHz)"),
        Parameter::new("aifsn", ParameterKind::Count(1, 15), "3").about(
            "slots after `sifs` before the backoff counts (IEEE 802.11-2020, table 9-155, best effort; 2 is DIFS)",
        ),
        Parameter::new("cw_min", ParameterKind::Count(0, 32_767), "15")
            .about("smallest contention window, slots (IEEE 802.11-2020, table 9-155, best effort)"),
        Parameter::new("cw_max", ParameterKind::Count(0, 32_767), "1023")
            .about("largest contention window, slots (IEEE 802.11-2020, table 9-155, best effort)"),
        Parameter::new("preamble", us(0, 10_000), "40 us")
            .about("preamble and PHY header of a data frame (IEEE 802.11-2020, 19.3.2, mixed format, two streams)"),
        Parameter::new("symbol", us(0, 1000), "4 us")
            .about("symbol of OFDM, to which frames are rounded up (IEEE 802.11-2020, table 19-6); 0 us: not OFDM"),
        Parameter::new("header", bytes(0, 1000), "38 B").about(
            "what the MAC adds to a packet: QoS header, frame check sequence, LLC and SNAP (IEEE 802.11-2020, 9.2.3)",
        ),
        Parameter::new("ack_preamble", us(0, 10_000), "20 us")
            .about("preamble and PHY header of an acknowledgement (IEEE 802.11-2020, 17.3.2, not HT)"),
        Parameter::new("ack_rate", ParameterKind::Rate, "24 Mbps")
            .about("rate of acknowledgements (IEEE 802.11-2020, 17.4.3, the highest mandatory one)"),
        Parameter::new("ampdu_packets", ParameterKind::Count(1, 64), "64")
            .about("most packets of a frame (IEEE 802.11-2020, 9.3.1.8.2, bitmap of the block ACK); 1: no aggregation"),
        Parameter::new("ampdu_size", bytes(1, 10_000_000), "65535 B")
            .about("most bytes of a frame with several packets (IEEE 802.11-2020, table 19-25, HT)"),
        Parameter::new("ampdu_time", us(1, 10_000), "5484 us")
            .about("longest airtime of a frame with several packets (IEEE 802.11-2020, table 19-25, aPPDUMaxTime)"),
        Parameter::new("attempts", ParameterKind::Count(1, 255), "7")
            .about("transmissions of a packet, after which it is lost (IEEE 802.11-2020, dot11ShortRetryLimit)"),
        Parameter::new("full_rate_attempts", ParameterKind::Count(1, 255), "2").about(
            "transmissions in a row without acknowledgement at the full rate; each further one has half of the rate \
             before and no frame errors (assumed)",
        ),
        Parameter::new("lowest_rate", ParameterKind::Rate, "6.5 Mbps")
            .about("lowest rate after failures (IEEE 802.11-2020, table 19-27, MCS 0, 20 MHz)"),
        Parameter::new("frame_error", ParameterKind::Fraction, "0 %").about(
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
