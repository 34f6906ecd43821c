// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random loss on the wire.
//!
//! To add a model: a variant of [`LossModel`], its entry in [`LOSS_MODELS`], and its draws in `is_lost`.

use crate::parameter::{Parameter, ParameterKind, Values, registry_entry};
use paceline_units::{Fraction, RandomStream};

/// A model: its name, its parameters, and how to create it.
pub struct LossEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// Creates the model.
    pub build: fn(&Values) -> LossModel,
}

registry_entry!(LossEntry, LOSS_MODELS, "model", "loss model");

/// Every model.
pub static LOSS_MODELS: &[LossEntry] = &[
    LossEntry {
        name: "bernoulli",
        summary: "each packet is lost independently with one probability",
        parameters: &[
            Parameter::required("probability", ParameterKind::Fraction).about("probability that a packet is lost")
        ],
        build: |values| LossModel::Bernoulli(values.fraction("probability")),
    },
    LossEntry {
        name: "gilbert-elliott",
        summary: "bursts: a good and a bad state, each with its own loss",
        parameters: &[
            Parameter::required("to_bad", ParameterKind::Fraction)
                .about("probability to go from good to bad, per packet"),
            Parameter::required("to_good", ParameterKind::Fraction)
                .about("probability to go from bad to good, per packet"),
            Parameter::new("good", ParameterKind::Fraction, "0 %").about("loss in the good state"),
            Parameter::new("bad", ParameterKind::Fraction, "100 %").about("loss in the bad state"),
        ],
        build: |values| {
            let [to_bad, to_good, good, bad] = ["to_bad", "to_good", "good", "bad"].map(|name| values.fraction(name));
            LossModel::GilbertElliott { to_bad, to_good, good, bad }
        },
    },
];

/// A random loss process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost independently of the others, with this probability.
    Bernoulli(Fraction),
    /// A good and a bad state, each with its own loss ratio (Gilbert 1960, Elliott 1963). The state may change before each packet.
    GilbertElliott {
        /// Probability to go from the good state to the bad, per packet.
        to_bad: Fraction,
        /// Probability to go from the bad state to the good, per packet.
        to_good: Fraction,
        /// Loss in the good state.
        good: Fraction,
        /// Loss in the bad state.
        bad: Fraction,
    },
}

/// The states of the model of Gilbert and Elliott.
const GOOD: u32 = 0;
const BAD: u32 = 1;

impl LossModel {
    /// No loss.
    pub const NONE: Self = Self::Bernoulli(Fraction::ZERO);

    /// Returns whether the next packet is lost. The caller keeps `state` between packets; it is 0 at first, and a scheduled
    /// change of model keeps it.
    #[inline]
    pub(super) fn is_lost(&self, state: &mut u32, random: &mut RandomStream) -> bool {
        match self {
            Self::Bernoulli(probability) => probability.get() != 0.0 && random.chance(probability.get()),
            Self::GilbertElliott { to_bad, to_good, good, bad } => {
                let (leave, other) = if *state == GOOD { (to_bad, BAD) } else { (to_good, GOOD) };
                if random.chance(leave.get()) {
                    *state = other;
                }
                random.chance(if *state == GOOD { good.get() } else { bad.get() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{Value, check_registry};
    use paceline_units::RandomStreams;

    fn losses(model: LossModel, seed: u64, packets: usize) -> Vec<bool> {
        let (mut state, mut random) = (0, RandomStreams::new(seed).stream("loss"));
        (0..packets).map(|_| model.is_lost(&mut state, &mut random)).collect()
    }

    fn count(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64
    }

    /// Each model with its defaults, and 10 % for each required fraction.
    #[test]
    fn models_lose_some_packets_and_equal_streams_give_equal_losses() {
        check_registry::<LossEntry>();
        for entry in LOSS_MODELS {
            let required = entry.parameters.iter().filter(|parameter| parameter.is_required);
            let given: Vec<(&str, Value)> =
                required.map(|p| (p.name, Value::Fraction(Fraction::new(0.1).unwrap()))).collect();
            let lost = || losses((entry.build)(&Values::new(entry.parameters, &given)), 5, 1000);
            assert!((50.0..950.0).contains(&count(&lost())), "{}: {}", entry.name, count(&lost()));
            assert_eq!(lost(), lost());
        }
    }

    #[test]
    fn no_loss_loses_nothing_and_draws_nothing() {
        let (mut random, mut other) = (RandomStreams::new(5).stream("loss"), RandomStreams::new(5).stream("loss"));
        assert!((0..1000).all(|_| !LossModel::NONE.is_lost(&mut 0, &mut random)));
        assert_eq!(random.bits(), other.bits());
    }

    #[test]
    fn loss_ratio_matches_the_probability() {
        let ratio = count(&losses(LossModel::Bernoulli(Fraction::new(0.05).unwrap()), 3, 200_000)) / 200_000.0;
        assert!((ratio - 0.05).abs() < 0.002, "{ratio}");
    }

    /// Stationary share of the bad state 0.01 / (0.01 + 0.2) = 4.76 %, mean burst 1 / 0.2 = 5 packets.
    #[test]
    fn loss_ratio_and_burst_length_match_the_model_of_gilbert_and_elliott() {
        let [to_bad, to_good, good, bad] = [0.01, 0.2, 0.0, 1.0].map(|x| Fraction::new(x).unwrap());
        let draws = losses(LossModel::GilbertElliott { to_bad, to_good, good, bad }, 3, 200_000);
        let (lost, bursts) = (count(&draws), draws.windows(2).filter(|w| !w[0] && w[1]).count() as f64);
        assert!((lost / 200_000.0 - 0.0476).abs() < 0.005, "{}", lost / 200_000.0);
        assert!((lost / bursts - 5.0).abs() < 0.3, "{}", lost / bursts);
    }
}
