// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts: what the path and the sources do over time, drawn from a seed.

use paceline_units::{RandomStream, RandomStreams};

/// What a script varies most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The capacity changes in steps.
    CapacitySteps,
    /// The link stalls, then sends what waited at once.
    Bursts,
    /// Up to 30 % of the packets are lost.
    Loss,
    /// Packets overtake each other.
    Reordering,
    /// Feedback is lost, for up to 5 s.
    FeedbackGaps,
    /// The sources send less than they may, and the sum of their maxima changes.
    ApplicationLimits,
    /// The receiver's clock is up to 500 ppm fast or slow.
    ClockDrift,
    /// The rate follows the controller, over a path with some of all this.
    ClosedLoop,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 8] = [
        Self::CapacitySteps,
        Self::Bursts,
        Self::Loss,
        Self::Reordering,
        Self::FeedbackGaps,
        Self::ApplicationLimits,
        Self::ClockDrift,
        Self::ClosedLoop,
    ];

    /// Returns the number of scripts of this class in the whole set of 200.
    pub fn scripts(self) -> u64 {
        match self {
            Self::ClosedLoop => 50,
            Self::CapacitySteps | Self::Loss | Self::ApplicationLimits => 22,
            _ => 21,
        }
    }
}

/// A class and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The class.
    pub class: Class,
    /// The seed.
    pub seed: u64,
}

/// Values over time: each applies from its time in ms on.
pub type Steps = Vec<(i64, u64)>;

/// The conditions of a script.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The length, ms.
    pub ms: i64,
    /// The capacity of the link, kbit/s.
    pub capacity: Steps,
    /// The longest queue, ms.
    pub queue_ms: i64,
    /// The delay in one direction, ms.
    pub delay_ms: i64,
    /// The share of packets that are lost at random, in 1/1000.
    pub loss: Steps,
    /// The share of packets that are delayed, and by how much at most, ms.
    pub late: (f64, f64),
    /// The time between two stalls of the link and their length, ms; zero: none.
    pub stalls_ms: (i64, i64),
    /// The interval of feedback, ms.
    pub feedback_ms: i64,
    /// The share of feedback that is lost.
    pub feedback_loss: f64,
    /// Times without feedback, ms.
    pub gaps: Vec<(i64, i64)>,
    /// The drift of the receiver's clock, ppm.
    pub drift_ppm: f64,
    /// The rate of the sources, kbit/s; in a closed loop their maximum.
    pub source: Steps,
    /// Whether the sources follow the target.
    pub follows: bool,
    /// The sum of the sources' maxima, kbit/s.
    pub allocation: Steps,
    /// Frames per second.
    pub fps: f64,
}

impl Script {
    /// Returns all scripts.
    pub fn all() -> impl Iterator<Item = Self> {
        Class::ALL.into_iter().flat_map(|class| (0..class.scripts()).map(move |seed| Self { class, seed }))
    }

    /// Returns the random stream of a part of the script.
    pub fn stream(&self, part: &str) -> RandomStream {
        RandomStreams::new(self.seed).stream(&format!("{:?}/{part}", self.class))
    }

    /// Draws the conditions.
    pub fn conditions(&self) -> Conditions {
        let random = &mut self.stream("conditions");
        let base = log_uniform(random, 200.0, 8000.0);
        let ms = 60_000 + (random.unit() * 20_000.0) as i64;
        let mut c = Conditions {
            ms,
            capacity: vec![(0, (base * random.uniform(0.9, 2.0)) as u64)],
            queue_ms: random.uniform(80.0, 800.0) as i64,
            delay_ms: log_uniform(random, 5.0, 150.0) as i64,
            loss: vec![(0, 0)],
            late: (0.0, 0.0),
            stalls_ms: (0, 0),
            feedback_ms: random.uniform(50.0, 120.0) as i64,
            feedback_loss: 0.0,
            gaps: Vec::new(),
            drift_ppm: 0.0,
            source: steps(random, ms, 15_000.0, |random| base * random.uniform(0.7, 1.3)),
            follows: false,
            allocation: Vec::new(),
            fps: random.uniform(15.0, 60.0),
        };
        match self.class {
            Class::CapacitySteps => {
                c.capacity = steps(random, ms, 8000.0, |random| base * random.uniform(0.4, 2.5));
            }
            Class::Bursts => c.stalls_ms = (random.uniform(200.0, 1000.0) as i64, random.uniform(10.0, 150.0) as i64),
            Class::Loss => c.loss = steps(random, ms, 10_000.0, loss),
            Class::Reordering => c.late = (random.uniform(0.005, 0.15), log_uniform(random, 2.0, 300.0)),
            Class::FeedbackGaps => {
                c.feedback_loss = random.uniform(0.0, 0.3);
                c.gaps = gaps(random, ms);
            }
            Class::ApplicationLimits => {
                c.source = steps(random, ms, 6000.0, |random| base * limit(random));
                c.allocation = steps(random, ms, 12_000.0, |random| base * random.uniform(0.3, 3.0));
            }
            Class::ClockDrift => c.drift_ppm = random.uniform(-500.0, 500.0),
            Class::ClosedLoop => closed_loop(&mut c, random, base),
        }
        c
    }
}

fn closed_loop(c: &mut Conditions, random: &mut RandomStream, base: f64) {
    let ms = c.ms;
    c.follows = true;
    c.source = vec![(0, 30_000)];
    c.capacity = steps(random, ms, 15_000.0, |random| base * random.uniform(0.4, 1.6));
    if random.chance(0.5) {
        c.loss = steps(random, ms, 15_000.0, loss);
    }
    if random.chance(0.3) {
        c.late = (random.uniform(0.0, 0.05), random.uniform(2.0, 60.0));
    }
    if random.chance(0.3) {
        c.stalls_ms = (random.uniform(200.0, 1000.0) as i64, random.uniform(10.0, 100.0) as i64);
    }
    if random.chance(0.3) {
        c.feedback_loss = random.uniform(0.0, 0.2);
        c.gaps = gaps(random, ms);
    }
    if random.chance(0.3) {
        c.source = steps(random, ms, 10_000.0, |random| base * limit(random) * 2.0);
    }
    c.drift_ppm = random.uniform(-100.0, 100.0);
}

/// Returns values at random times, this many ms apart on average.
fn steps(random: &mut RandomStream, ms: i64, apart: f64, mut value: impl FnMut(&mut RandomStream) -> f64) -> Steps {
    let (mut at, mut all) = (0.0, Vec::new());
    while (at as i64) < ms {
        all.push((at as i64, value(random).max(1.0) as u64));
        at += apart * random.uniform(0.2, 1.8);
    }
    all
}

/// Returns a share of lost packets, in 1/1000: often none, at most 30 %.
fn loss(random: &mut RandomStream) -> f64 {
    if random.chance(0.3) { 0.0 } else { log_uniform(random, 2.0, 300.0) }
}

/// Returns the share of the capacity that the sources use: often little.
fn limit(random: &mut RandomStream) -> f64 {
    if random.chance(0.5) { random.uniform(0.02, 0.4) } else { random.uniform(0.4, 1.2) }
}

fn gaps(random: &mut RandomStream, ms: i64) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    let mut at = 3000 + (random.unit() * 9000.0) as i64;
    while at < ms {
        let end = at + log_uniform(random, 200.0, 5000.0) as i64;
        all.push((at, end));
        at = end + 2000 + (random.unit() * 12_000.0) as i64;
    }
    all
}

fn log_uniform(random: &mut RandomStream, low: f64, high: f64) -> f64 {
    // A quotient of 2^20 steps, without the logarithm of the platform.
    let share = random.unit();
    let mut value = low;
    let mut factor = high / low;
    let mut bits = (share * f64::from(1 << 20)) as u32;
    for _ in 0..20 {
        factor = factor.sqrt();
        if bits & (1 << 19) != 0 {
            value *= factor;
        }
        bits <<= 1;
    }
    value
}
