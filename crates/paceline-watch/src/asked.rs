//! What a page may ask for, and within which bounds.

use paceline_lab::moves::Move;
use paceline_units::{Fraction, Rate, TimeDelta};
use serde::{Deserialize, Serialize};

/// A message of a page.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    CapacityBps(f64),
    DelayMs(f64),
    Loss(f64),
    QueueMs(f64),
    OutageMs(f64),
    Scenario,
}

/// The least and the most of each slider; a page is told them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranges {
    capacity_bps: [f64; 2],
    delay_ms: [f64; 2],
    loss: [f64; 2],
    queue_ms: [f64; 2],
    outage_ms: [f64; 2],
}

/// What a call may meet: from a bad cell to a home line, from a wire to a satellite.
pub const RANGES: Ranges = Ranges {
    capacity_bps: [100e3, 10e6],
    delay_ms: [0.0, 500.0],
    loss: [0.0, 0.2],
    queue_ms: [20.0, 1000.0],
    outage_ms: [100.0, 10_000.0],
};

/// A message as a move, or why it is none.
pub fn read(text: &str) -> Result<Move, String> {
    let asked: Asked = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let within = |value: f64, [least, most]: [f64; 2]| match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(format!("{value} is not within {least} and {most}")),
    };
    let time = |ms: f64, range| within(ms, range).map(|ms| TimeDelta::from_secs_f64(ms / 1e3));
    Ok(match asked {
        Asked::CapacityBps(bps) => Move::Capacity(Rate::from_bps_f64(within(bps, RANGES.capacity_bps)?)),
        Asked::DelayMs(ms) => Move::Delay(time(ms, RANGES.delay_ms)?),
        Asked::Loss(loss) => Move::Loss(Fraction::new(within(loss, RANGES.loss)?).ok_or("it is no fraction")?),
        Asked::QueueMs(ms) => Move::Queue(time(ms, RANGES.queue_ms)?),
        Asked::OutageMs(ms) => Move::Outage(time(ms, RANGES.outage_ms)?),
        Asked::Scenario => Move::Scenario,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_bounds_is_a_move() {
        let ms = TimeDelta::from_millis;
        for (text, wanted) in [
            (r#"{"capacity_bps":100000}"#, Move::Capacity(Rate::from_kbps(100))),
            (r#"{"capacity_bps":1e7}"#, Move::Capacity(Rate::from_kbps(10_000))),
            (r#"{"delay_ms":0}"#, Move::Delay(ms(0))),
            (r#"{"delay_ms":500}"#, Move::Delay(ms(500))),
            (r#"{"loss":0.2}"#, Move::Loss(Fraction::new(0.2).unwrap())),
            (r#"{"queue_ms":20}"#, Move::Queue(ms(20))),
            (r#"{"outage_ms":3000}"#, Move::Outage(ms(3000))),
            (r#""scenario""#, Move::Scenario),
        ] {
            assert_eq!(read(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_beyond_them_is_none() {
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
            assert!(read(text).is_err(), "{text}");
        }
    }
}
