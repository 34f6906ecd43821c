// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values with several forms: text, a list or a table; and those of them that need no other part of this crate.

use paceline_netsim::parameter::QueueLimit;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A value that is text, and may have other forms.
pub trait Forms<'de>: Sized {
    /// Describes the forms, with their article and an example.
    fn expected() -> String;
    /// Reads the text form.
    fn from_text(text: &str) -> Result<Self, String>;
    /// Reads the form of a list, if there is one.
    fn from_list<A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::expected().as_str()))
    }
    /// Reads the form of a table, if there is one.
    fn from_table<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::invalid_type(Unexpected::Map, &Self::expected().as_str()))
    }
}

pub(super) struct FormsVisitor<T>(pub PhantomData<T>);

impl<'de, T: Forms<'de>> Visitor<'de> for FormsVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&T::expected())
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, table: D) -> Result<T, D::Error> {
        T::from_table(table)
    }
}

macro_rules! deserialize_forms {
    ($($name:ty)*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_newtype_struct("$forms", FormsVisitor(PhantomData))
            }
        }
    )* };
}
pub(super) use deserialize_forms;
deserialize_forms!(Limit Timed<TimeDelta> Timed<DataSize> Timed<Rate>);

pub(super) fn parsed<T: std::str::FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

macro_rules! quantities {
    ($($name:ident $expected:literal,)*) => { $(
        impl Forms<'_> for $name {
            fn expected() -> String {
                $expected.to_owned()
            }
            fn from_text(text: &str) -> Result<Self, String> {
                parsed(text)
            }
        }
    )* };
}
quantities! {
    TimeDelta "a time like \"300 ms\"",
    DataSize "a size like \"1500 B\"",
    Rate "a rate like \"1 Mbps\"",
}

/// A value, or a list of `[time, value]`, each from its time on.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, rename = "Timed{T}")]
pub enum Timed<T> {
    /// From the start to the end.
    Constant(T),
    /// From these times on.
    Schedule(Vec<(Time, T)>),
}

impl<'de, T: Forms<'de> + Deserialize<'de>> Forms<'de> for Timed<T> {
    fn expected() -> String {
        format!("{} or a list of [time, value]", T::expected())
    }
    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Timed::Constant)
    }
    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Timed::Schedule)
    }
    fn from_table<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        T::from_table(table).map(Timed::Constant)
    }
}

/// A queue's limit: a drain time, a size, or a number of packets, by its unit.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(with = "String", extend("examples" = ["300 ms", "60 KB", "50 packets"]))]
pub struct Limit(pub QueueLimit);

impl Forms<'_> for Limit {
    fn expected() -> String {
        "a queue limit like \"300 ms\", \"60 KB\" or \"50 packets\"".to_owned()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        parsed(text).map(Limit)
    }
}
