//! Values that may be written in more than one way: a constant or a schedule, a quantity or a table.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use super::file::Placed;
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};

/// A value, or a list of `[time, value]`, each from its time on.
#[derive(Clone, Debug)]
pub enum Timed<T> {
    /// For ever.
    Constant(T),
    /// From these times on.
    Schedule(Vec<(Time, T)>),
}

/// What a value is called when something else stands in its place.
pub trait Called {
    /// With its article and an example.
    const WHAT: &'static str;
}
impl Called for TimeDelta {
    const WHAT: &'static str = "a time like \"300 ms\"";
}
impl Called for Rate {
    const WHAT: &'static str = "a rate like \"1 Mbps\"";
}
impl Called for Loss {
    const WHAT: &'static str = "a fraction like \"1 %\", a table like { model = \"gilbert-elliott\", … }";
}

impl<'de, T: Deserialize<'de> + Called> Deserialize<'de> for Timed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Called> Visitor<'de> for Either<T> {
            type Value = Timed<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} or a list of [time, value]", T::WHAT)
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
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Limit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a queue limit like \"300 ms\", \"60 KB\" or \"50 packets\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl FromStr for Limit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        let limit = match packets {
            Some(number) => number.trim().parse().map(Limit::Packets).ok(),
            None => text.parse().map(Limit::Time).or_else(|_| text.parse().map(Limit::Bytes)).ok(),
        };
        limit.ok_or_else(|| {
            format!("`{text}` is not a queue limit; write a time \"300 ms\", a size \"60 KB\" or \"50 packets\"")
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
#[derive(Clone, Debug)]
pub enum Loss {
    /// Each packet independently: `"1 %"`.
    Fraction(Fraction),
    /// `{ model = "gilbert-elliott", ... }`.
    Model(LossTable),
}

/// A loss model with its numbers. Which of them make sense depends on `model`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossTable {
    /// `bernoulli`, each packet independently, or `gilbert-elliott`, bursts: two states, each with its own loss.
    pub model: Placed<String>,
    /// `bernoulli`: probability that a packet is lost; for `bernoulli` an error if absent.
    pub probability: Option<Placed<Fraction>>,
    /// `gilbert-elliott`: probability to go from good to bad, per packet; for `gilbert-elliott` an error if absent.
    pub to_bad: Option<Placed<Fraction>>,
    /// `gilbert-elliott`: probability to go from bad to good, per packet; for `gilbert-elliott` an error if absent.
    pub to_good: Option<Placed<Fraction>>,
    /// `gilbert-elliott`: loss in the good state; 0 % if absent.
    pub good: Option<Placed<Fraction>>,
    /// `gilbert-elliott`: loss in the bad state; 100 % if absent.
    pub bad: Option<Placed<Fraction>>,
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Self::Value::WHAT)
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
