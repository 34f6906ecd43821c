// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss, the server and the capacity of a hop, each with several forms.

use super::forms::{Forms, FormsVisitor, Timed, deserialize_forms, parsed};
use super::parameters::Parameters;
use super::text_span::{Spanned, Table};
use super::trace::Direction;
use paceline_netsim::link::loss::LossEntry;
use paceline_netsim::link::server::ServerEntry;
use paceline_units::{Fraction, Rate};
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, SeqAccess};
use std::marker::PhantomData;

deserialize_forms!(Loss Server CapacityValue Timed<Loss>);

/// Random loss: a fraction, or a model with its numbers.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Loss {
    /// Each packet independently: `"1 %"`.
    Fraction(Fraction),
    /// `{ model = "gilbert-elliott", ... }`.
    Model(Box<Table<LossTable>>),
}

/// A loss model with its numbers. Which of them make sense depends on `model`.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossTable {
    /// Its name; `paceline list losses` shows all.
    pub model: Spanned<String>,
    #[serde(rename = "$parameters")]
    #[schemars(flatten)]
    pub parameters: Table<Parameters<LossEntry>>,
}

impl<'de> Forms<'de> for Loss {
    fn expected() -> String {
        "a fraction like \"1 %\", a table like { model = \"gilbert-elliott\", … }".to_owned()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        parsed(text).map(Loss::Fraction)
    }
    fn from_table<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        Table::deserialize(table).map(|table| Loss::Model(Box::new(table)))
    }
}

/// A link server.
#[derive(Debug, JsonSchema)]
pub struct Server(pub Table<ServerTable>);

/// A link server. Which of the keys make sense depends on `kind`.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    /// Its kind, of which `paceline list servers` shows all; the one that `burst` or `medium` implies, else `line` if absent.
    pub kind: Option<Spanned<String>>,
    #[serde(rename = "$parameters")]
    #[schemars(flatten)]
    pub parameters: Table<Parameters<ServerEntry>>,
}

impl<'de> Forms<'de> for Server {
    fn expected() -> String {
        "a table like { kind = \"wifi\", medium = \"air\" }".to_owned()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!(
            "a link server is a table; write server = {{ kind = \"{text}\", … }}, with the keys of the server in it"
        ))
    }
    fn from_table<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        Table::deserialize(table).map(Self)
    }
}

/// A rate, a list of [time, rate], or a recorded trace.
#[derive(Debug, JsonSchema)]
#[schemars(untagged, rename = "Capacity")]
pub enum CapacityValue {
    /// Constant or stepped.
    Rates(Timed<Rate>),
    /// Recorded.
    Trace(TraceTable),
}

impl<'de> Forms<'de> for CapacityValue {
    fn expected() -> String {
        "a rate like \"1 Mbps\", a list like [[\"0s\", \"1 Mbps\"], [\"50s\", \"2.5 Mbps\"]], or a table like \
         { trace = \"file\" }"
            .to_owned()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        Timed::from_text(text).map(Self::Rates)
    }
    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Timed::from_list(list).map(Self::Rates)
    }
    fn from_table<D: Deserializer<'de>>(table: D) -> Result<Self, D::Error> {
        TraceTable::deserialize(table).map(Self::Trace)
    }
}

/// A recorded capacity.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceTable {
    /// The file: mahimahi, HSDPA, Ghent 4G, AlphaRTC JSON or `time,rate` CSV, recognised by its content.
    pub trace: Spanned<String>,
    /// The direction of a trace that has both; `downlink` if absent.
    pub direction: Option<Direction>,
    /// The capacity after the last entry; as the format's own tools do if absent.
    pub end: Option<TraceEnd>,
}

/// The capacity after the last entry of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEnd {
    /// It starts again.
    Loop,
    /// The last value holds.
    Hold,
}
