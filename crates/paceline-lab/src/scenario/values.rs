//! Values that may be written in more than one way: a constant or a schedule, a quantity or a table.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use paceline_units::{DataSize, Fraction, Time, TimeDelta};

/// A value, or a list of `[time, value]`, each from its time on.
#[derive(Clone, Debug, PartialEq)]
pub enum Timed<T> {
    /// For ever.
    Constant(T),
    /// From these times on.
    Schedule(Vec<(Time, T)>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Timed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Timed<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its unit, or a list of [time, value] like [[\"0s\", …], [\"50s\", …]]")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(Timed::Constant)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Timed::Constant)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Timed::Schedule)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Timed<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Timed{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        let time = generator.subschema_for::<Time>();
        json_schema!({ "anyOf": [
            value,
            { "type": "array", "items": { "type": "array", "prefixItems": [time, value], "minItems": 2, "maxItems": 2 } }
        ]})
    }
}

/// A queue's limit: a drain time, a size, or a number of packets, by its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// `"300 ms"`.
    Time(TimeDelta),
    /// `"60 KB"`.
    Bytes(DataSize),
    /// `"50 packets"`.
    Packets(u32),
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        if let Some(number) = text.trim().strip_suffix("packets") {
            let packets = number.trim().parse();
            return packets
                .map(Limit::Packets)
                .map_err(|_| D::Error::custom(format!("`{text}` is not a number of packets")));
        }
        if let Ok(time) = text.parse() {
            return Ok(Limit::Time(time));
        }
        let bytes = text.parse().map(Limit::Bytes);
        bytes.map_err(|_| {
            D::Error::custom(format!("`{text}` is not a queue limit; write \"300 ms\", \"60 KB\" or \"50 packets\""))
        })
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["300 ms", "60 KB", "50 packets"] })
    }
}

/// Random loss: a fraction, or a model with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet independently: `"1 %"`.
    Fraction(Fraction),
    /// `{ model = "gilbert-elliott", ... }`.
    Model(LossTable),
}

/// A loss model with its numbers.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossTable {
    /// Each packet independently.
    Bernoulli {
        /// Probability that a packet is lost.
        probability: Fraction,
    },
    /// Bursts: two states, each with its own loss.
    GilbertElliott {
        /// Probability to go from good to bad, per packet.
        to_bad: Fraction,
        /// Probability to go from bad to good, per packet.
        to_good: Fraction,
        /// Loss in the good state; 0 if absent.
        #[serde(default)]
        good: Fraction,
        /// Loss in the bad state; 100 % if absent.
        #[serde(default = "all")]
        bad: Fraction,
    },
}

fn all() -> Fraction {
    Fraction::ONE
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a fraction like \"1 %\", or a table like { model = \"gilbert-elliott\", … }")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Loss, E> {
                text.parse().map(Loss::Fraction).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                LossTable::deserialize(MapAccessDeserializer::new(map)).map(Loss::Model)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fraction = generator.subschema_for::<Fraction>();
        let table = generator.subschema_for::<LossTable>();
        json_schema!({ "anyOf": [fraction, table] })
    }
}
