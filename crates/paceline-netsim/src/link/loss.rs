//! Random loss on the wire. To add a model: a variant of [`LossModel`] here, and a line in [`LOSS_MODELS`].

use crate::parameter::{Parameter, ParameterKind, Value, Values};
use paceline_units::{Fraction, RandomStream};

/// Every model.
pub static LOSS_MODELS: &[LossEntry] = &[BERNOULLI, GILBERT_ELLIOTT];

/// A model: its name, its parameters, and how to create it.
#[derive(Debug)]
pub struct LossEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// Creates the model.
    pub build: fn(&Values) -> LossModel,
}

const BERNOULLI: LossEntry = LossEntry {
    name: "bernoulli",
    summary: "each packet is lost independently with one probability",
    parameters: &[Parameter::required("probability", ParameterKind::Fraction, "probability that a packet is lost")],
    build: |values| LossModel::Bernoulli { probability: values.fraction("probability") },
};

const GILBERT_ELLIOTT: LossEntry = LossEntry {
    name: "gilbert-elliott",
    summary: "bursts: a good and a bad state, each with its own loss",
    parameters: &[
        Parameter::required("to_bad", ParameterKind::Fraction, "probability to go from good to bad, per packet"),
        Parameter::required("to_good", ParameterKind::Fraction, "probability to go from bad to good, per packet"),
        Parameter::new(
            "good",
            ParameterKind::Fraction,
            (Value::Fraction(Fraction::ZERO), "0 %"),
            "loss in the good state",
        ),
        Parameter::new(
            "bad",
            ParameterKind::Fraction,
            (Value::Fraction(Fraction::ONE), "100 %"),
            "loss in the bad state",
        ),
    ],
    build: |values| LossModel::GilbertElliott {
        to_bad: values.fraction("to_bad"),
        to_good: values.fraction("to_good"),
        good: values.fraction("good"),
        bad: values.fraction("bad"),
    },
};

/// A random loss process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet independently.
    Bernoulli {
        /// Probability that a packet is lost.
        probability: Fraction,
    },
    /// Two states, each with its own loss ratio (Gilbert 1960, Elliott 1963); the state may change before each packet.
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

impl LossModel {
    /// No loss.
    pub const NONE: Self = Self::Bernoulli { probability: Fraction::ZERO };

    /// Returns whether the next packet is lost. The caller keeps `is_bad`, the state of two-state models; it starts as
    /// false.
    pub(crate) fn draw(&self, is_bad: &mut bool, random: &mut RandomStream) -> bool {
        match self {
            Self::Bernoulli { probability } if probability.get() == 0.0 => false,
            Self::Bernoulli { probability } => random.chance(probability.get()),
            Self::GilbertElliott { to_bad, to_good, good, bad } => {
                let flip = if *is_bad { *to_good } else { *to_bad };
                *is_bad ^= random.chance(flip.get());
                random.chance(if *is_bad { bad.get() } else { good.get() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    fn f(x: f64) -> Fraction {
        Fraction::new(x).unwrap()
    }

    #[test]
    fn loss_ratio_and_burst_length_match_the_model() {
        let mut random = RandomStreams::new(3).stream("loss");
        let (model, mut is_bad) = (LossModel::Bernoulli { probability: f(0.05) }, false);
        let n = 200_000;
        let lost = (0..n).filter(|_| model.draw(&mut is_bad, &mut random)).count() as f64 / n as f64;
        assert!((lost - 0.05).abs() < 0.002, "{lost}");

        // Stationary share of the bad state 0.01 / (0.01 + 0.2) = 4.76 %, mean burst 1 / 0.2 = 5 packets.
        let model = LossModel::GilbertElliott { to_bad: f(0.01), to_good: f(0.2), good: f(0.0), bad: f(1.0) };
        let draws: Vec<bool> = (0..n).map(|_| model.draw(&mut is_bad, &mut random)).collect();
        let lost = draws.iter().filter(|l| **l).count() as f64;
        let bursts = draws.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        assert!((lost / n as f64 - 0.0476).abs() < 0.005, "{}", lost / n as f64);
        assert!((lost / bursts - 5.0).abs() < 0.3, "{}", lost / bursts);
    }
}
