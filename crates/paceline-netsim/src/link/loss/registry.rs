//! The loss models by name. To add one: a file in this folder that declares a [`LossEntry`] and a type with
//! [`LossProcess`], and a line in [`loss_models!`](self).

use super::{Bernoulli, GilbertElliott, LossProcess, bernoulli, gilbert_elliott};
use crate::parameter::{Parameter, Values, registry_entry};
use paceline_units::{Fraction, RandomStream};

/// A model: its name, its parameters, and how to create it.
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

registry_entry!(LossEntry, LOSS_MODELS, "model", "loss model");

/// Declares the registry and the type of all models, which the link calls without a virtual call.
macro_rules! loss_models {
    ($($file:ident $model:ident,)*) => {
        /// Every model.
        pub static LOSS_MODELS: &[LossEntry] = &[$($file::ENTRY),*];

        /// A random loss process.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum LossModel {
            $($model($model),)*
        }

        $(impl From<$model> for LossModel {
            fn from(model: $model) -> Self {
                Self::$model(model)
            }
        })*

        impl LossProcess for LossModel {
            #[inline]
            fn is_lost(&self, state: &mut u32, random: &mut RandomStream) -> bool {
                match self {
                    $(Self::$model(model) => model.is_lost(state, random),)*
                }
            }
        }
    };
}
loss_models! {
    bernoulli Bernoulli,
    gilbert_elliott GilbertElliott,
}

impl LossModel {
    /// No loss.
    pub const NONE: Self = Self::bernoulli(Fraction::ZERO);

    /// Returns a model that loses each packet independently with this probability.
    pub const fn bernoulli(probability: Fraction) -> Self {
        Self::Bernoulli(Bernoulli { probability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{ParameterKind, Value, check_registry};
    use paceline_units::RandomStreams;

    /// A model built from the defaults, and 10 % for each required fraction.
    fn build(entry: &LossEntry) -> LossModel {
        let required = entry.parameters.iter().filter(|parameter| parameter.is_required);
        let given: Vec<(&str, Value)> = required
            .map(|parameter| {
                assert_eq!(parameter.kind, ParameterKind::Fraction);
                (parameter.name, Value::Fraction(Fraction::new(0.1).unwrap()))
            })
            .collect();
        (entry.build)(&Values::new(entry.parameters, &given))
    }

    #[test]
    fn names_are_unique_and_defaults_are_allowed() {
        check_registry::<LossEntry>();
    }

    #[test]
    fn models_lose_some_packets_and_equal_streams_give_equal_losses() {
        for entry in LOSS_MODELS {
            let lost = || {
                let (model, mut state, mut random) = (build(entry), 0, RandomStreams::new(5).stream("loss"));
                (0..1000).map(|_| model.is_lost(&mut state, &mut random)).collect::<Vec<bool>>()
            };
            let count = lost().iter().filter(|lost| **lost).count();
            assert!((50..950).contains(&count), "{}: {count}", entry.name);
            assert_eq!(lost(), lost());
        }
    }

    #[test]
    fn no_loss_loses_nothing_and_draws_nothing() {
        let (mut random, mut other) = (RandomStreams::new(5).stream("loss"), RandomStreams::new(5).stream("loss"));
        assert!((0..1000).all(|_| !LossModel::NONE.is_lost(&mut 0, &mut random)));
        assert_eq!(random.bits(), other.bits());
    }
}
