// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of a page and their ranges.

use paceline_netsim::records::LinkUpdate;
use paceline_units::{Fraction, Rate, TimeDelta};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UiCommand {
    CapacityBps(f64),
    DelayMs(f64),
    Loss(f64),
    QueueMs(f64),
    OutageMs(f64),
    Scenario,
}

/// The range of each slider; part of the first message to a page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranges {
    capacity_bps: [f64; 2],
    delay_ms: [f64; 2],
    loss: [f64; 2],
    queue_ms: [f64; 2],
    outage_ms: [f64; 2],
}

/// Ranges from a poor cellular link to a home connection, and from a cable to a satellite link.
pub const RANGES: Ranges = Ranges {
    capacity_bps: [100e3, 10e6],
    delay_ms: [0.0, 500.0],
    loss: [0.0, 0.2],
    queue_ms: [20.0, 1000.0],
    outage_ms: [100.0, 10_000.0],
};

/// Parses a command and checks its range.
///
/// # Errors
/// The reason why the command is rejected, for display.
pub fn parse(text: &str) -> Result<LinkUpdate, String> {
    let command: UiCommand = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let within = |value: f64, [least, most]: [f64; 2]| match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is not between {least} and {most}")),
    };
    let time = |ms: f64, range| within(ms, range).map(|ms| TimeDelta::from_secs_f64(ms / 1e3));
    Ok(match command {
        UiCommand::CapacityBps(bps) => LinkUpdate::Capacity(Rate::from_bps_f64(within(bps, RANGES.capacity_bps)?)),
        UiCommand::DelayMs(ms) => LinkUpdate::Delay(time(ms, RANGES.delay_ms)?),
        UiCommand::Loss(loss) => {
            LinkUpdate::Loss(Fraction::new(within(loss, RANGES.loss)?).ok_or("loss must be a fraction")?)
        }
        UiCommand::QueueMs(ms) => LinkUpdate::Queue(time(ms, RANGES.queue_ms)?),
        UiCommand::OutageMs(ms) => LinkUpdate::Outage(time(ms, RANGES.outage_ms)?),
        UiCommand::Scenario => LinkUpdate::Scenario,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_values_within_range() {
        let ms = TimeDelta::from_millis;
        for (text, expected) in [
            (r#"{"capacity_bps":100000}"#, LinkUpdate::Capacity(Rate::from_kbps(100))),
            (r#"{"capacity_bps":1e7}"#, LinkUpdate::Capacity(Rate::from_kbps(10_000))),
            (r#"{"delay_ms":0}"#, LinkUpdate::Delay(ms(0))),
            (r#"{"delay_ms":500}"#, LinkUpdate::Delay(ms(500))),
            (r#"{"loss":0.2}"#, LinkUpdate::Loss(Fraction::new(0.2).unwrap())),
            (r#"{"queue_ms":20}"#, LinkUpdate::Queue(ms(20))),
            (r#"{"outage_ms":3000}"#, LinkUpdate::Outage(ms(3000))),
            (r#""scenario""#, LinkUpdate::Scenario),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_commands() {
        for text in [
            r#"{"capacity_bps":99999}"#,
            r#"{"capacity_bps":10000001}"#,
            r#"{"delay_ms":-1}"#,
            r#"{"delay_ms":501}"#,
            r#"{"loss":0.21}"#,
            r#"{"loss":null}"#,
            r#"{"loss":"1"}"#,
            r#"{"queue_ms":19}"#,
            r#"{"outage_ms":1e300}"#,
            r#"{"delay_ms":1,"loss":0}"#,
            r#"{"capacity_bps":[]}"#,
            r#""stop""#,
            "{}",
            "",
            "\u{0}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
