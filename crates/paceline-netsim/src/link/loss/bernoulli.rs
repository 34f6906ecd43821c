//! Bernoulli loss: each packet is lost independently of the others.

use super::{LossEntry, LossProcess};
use crate::parameter::{Parameter, ParameterKind};
use paceline_units::{Fraction, RandomStream};

pub(super) const ENTRY: LossEntry = LossEntry {
    name: "bernoulli",
    summary: "each packet is lost independently with one probability",
    parameters: &[Parameter::required("probability", ParameterKind::Fraction, "probability that a packet is lost")],
    build: |values| Bernoulli { probability: values.fraction("probability") }.into(),
};

/// Each packet independently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bernoulli {
    /// Probability that a packet is lost.
    pub probability: Fraction,
}

impl LossProcess for Bernoulli {
    #[inline]
    fn is_lost(&self, _: &mut u32, random: &mut RandomStream) -> bool {
        self.probability.get() != 0.0 && random.chance(self.probability.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn loss_ratio_matches_the_probability() {
        let mut random = RandomStreams::new(3).stream("loss");
        let model = Bernoulli { probability: Fraction::new(0.05).unwrap() };
        let n = 200_000;
        let lost = (0..n).filter(|_| model.is_lost(&mut 0, &mut random)).count() as f64 / n as f64;
        assert!((lost - 0.05).abs() < 0.002, "{lost}");
    }
}
