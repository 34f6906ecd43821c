// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures with known causes, from the simulator. Everything follows from the number of a capture and its seed.
//!
//! A capture is a call of 45 s on a path that carries more than the call needs. In a window after 15 s to 20 s one cause, or two at
//! the same time, act on it. What the rate does in the window, and shortly after, has these causes; what it does outside has none.

#![allow(dead_code, reason = "tests and the example use different parts")]

pub mod draft;
pub mod formats;
pub mod score;

use draft::Draft;
use paceline_units::{RandomStream, RandomStreams};

/// The number of captures.
pub const CAPTURES: u64 = 400;
/// Of the test half, the seeds are the numbers and this. It changes when rules were changed after a look at the test half.
const TEST_SEEDS: u64 = 800_000;
/// The duration of each, s.
pub const DURATION_S: f64 = 45.0;

/// A cause and how it acts on a call.
pub struct Template {
    /// The id of the cause.
    pub cause: &'static str,
    /// Sets the keys of the scenario.
    apply: fn(&mut Draft, &mut RandomStream),
    /// What it needs for itself: two causes that need the same do not act together.
    needs: &'static [Part],
}

/// A part of the scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Capacity,
    Loss,
    Delay,
    Reverse,
    Source,
    Limit,
    /// The cause must act alone.
    All,
}

/// The format in which the explainer gets a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// The events of endpoints, as in a folder of --out.
    Run,
    /// A pcapng file with the packets at both ends.
    Capture,
    /// A pcapng file with the packets at the sender.
    SenderCapture,
    /// Samples of getStats as JSON lines, one a second.
    Statistics,
}

/// Assumed: a rate reacts to what has ended up to this long after, s, besides a round trip.
const LAG_S: f64 = 3.0;

/// A generated capture.
pub struct Generated {
    /// Its number.
    pub number: u64,
    /// The seed of what is drawn.
    pub seed: u64,
    /// The causes, one or two.
    pub causes: Vec<&'static str>,
    /// The window in which they act, s.
    pub window_s: (f64, f64),
    /// The end of the span in which the rate may still react, s.
    pub reacts_until_s: f64,
    /// The scenario.
    pub text: String,
    /// Whether the encoder says that the CPU limits it, and its time per frame there, s. Only statistics show them.
    pub cpu: Option<(bool, f64)>,
    /// The limit of `rate-cap`, bit/s. It explains no drop from a rate that is already below it.
    pub cap: Option<f64>,
    /// Whether thresholds may be chosen on it.
    pub is_training: bool,
    /// The format.
    pub format: Format,
}

/// Every template.
pub const TEMPLATES: &[Template] = &[
    Template { cause: "own-queue", apply: draft::own_queue, needs: &[Part::Capacity] },
    Template { cause: "cross-traffic", apply: draft::cross_traffic, needs: &[Part::Capacity] },
    Template { cause: "random-loss", apply: draft::random_loss, needs: &[Part::Loss] },
    Template { cause: "congestive-loss", apply: draft::congestive_loss, needs: &[Part::Capacity, Part::Loss] },
    Template { cause: "rtt-backoff", apply: draft::rtt_backoff, needs: &[Part::All] },
    Template { cause: "application", apply: draft::application, needs: &[Part::Source] },
    Template { cause: "rate-cap", apply: draft::rate_cap, needs: &[Part::Limit] },
    Template { cause: "feedback", apply: draft::feedback, needs: &[Part::Reverse] },
    Template { cause: "outage", apply: draft::outage, needs: &[Part::Capacity, Part::Reverse] },
    Template { cause: "route-change", apply: draft::route_change, needs: &[Part::Delay] },
    Template { cause: "policer", apply: draft::policer, needs: &[Part::All] },
    Template { cause: "delay-bursts", apply: draft::delay_bursts, needs: &[Part::Capacity, Part::Delay] },
    Template { cause: "probe", apply: draft::probe, needs: &[Part::All] },
    Template { cause: "cpu", apply: draft::cpu, needs: &[Part::Source] },
];

/// Returns the capture of a number.
pub fn generate(number: u64) -> Generated {
    let count = TEMPLATES.len() as u64;
    // Three of four captures have one cause.
    let group = number / 4;
    let is_training = (group / 5).is_multiple_of(2);
    let seed = if number < CAPTURES && !is_training { number + TEST_SEEDS } else { number };
    let mut random = RandomStreams::new(seed).stream("explain/capture");
    let (first, second) = match number % 4 {
        3 => {
            let free = |a: &Template, b: &Template| {
                let all = |t: &Template| t.needs.contains(&Part::All);
                !all(a) && !all(b) && a.needs.iter().all(|need| !b.needs.contains(need))
            };
            let pairs: Vec<(usize, usize)> = (0..TEMPLATES.len())
                .flat_map(|a| (a + 1..TEMPLATES.len()).map(move |b| (a, b)))
                .filter(|(a, b)| free(&TEMPLATES[*a], &TEMPLATES[*b]))
                .collect();
            let (a, b) = pairs[(group as usize * 7) % pairs.len()];
            (&TEMPLATES[a], Some(&TEMPLATES[b]))
        }
        one => (&TEMPLATES[((group * 3 + one) % count) as usize], None),
    };
    let mut draft = Draft::new(&mut random, number);
    (first.apply)(&mut draft, &mut random);
    if let Some(second) = second {
        (second.apply)(&mut draft, &mut random);
    }
    let causes: Vec<&str> = [Some(first.cause), second.map(|second| second.cause)].into_iter().flatten().collect();
    // Only statistics show what limits an encoder.
    let format = match (draft.cpu.is_some(), number % 5) {
        (true, _) => Format::Statistics,
        (false, 0 | 1) => Format::Run,
        (false, 2) => Format::Capture,
        (false, 3) => Format::SenderCapture,
        (false, _) => Format::Statistics,
    };
    Generated {
        number,
        seed,
        window_s: draft.window_s,
        reacts_until_s: draft.window_s.1 + LAG_S + 2.0 * draft.longest_rtt_s(),
        text: draft.text(),
        cpu: draft.cpu,
        cap: draft.cap,
        is_training,
        causes,
        format,
    }
}
