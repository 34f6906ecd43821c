// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reflection of parameters: the name, unit, range, description and source of every number that can be set. The `--set`
//! option, the reference pages, sensitivity runs and sweeps are built on it.
//!
//! [`params!`](crate::params) declares a struct of parameters and implements [`Parameters`] for it. A struct may contain
//! another one, a block. It then offers all parameters of the block or some of them, and may give each another source.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::ops::RangeInclusive;
use paceline_units::{DataSize, Rate, TimeDelta};

/// A parameter, as help texts and reference pages show it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldInfo {
    /// The name by which [`Entry::build`](crate::Entry::build) and `--set` know it.
    pub name: &'static str,
    /// The unit; empty for pure numbers.
    pub unit: &'static str,
    /// A description, followed by the source of the default.
    pub source: String,
    /// The lowest and the highest valid value.
    pub range: (f64, f64),
    /// The value in this config.
    pub default: f64,
}

/// A struct of parameters, which [`params!`](crate::params) declares.
pub trait Parameters {
    /// Passes each parameter to the visitor. A struct without parameters keeps the default.
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        let _ = fields;
    }
    /// Returns the parameters with their values.
    fn list(&self) -> Vec<FieldInfo>
    where
        Self: Clone,
    {
        FieldVisitor::collect(&mut self.clone(), None)
    }
    /// Sets a parameter without a check of its range. Returns whether there is one of this name.
    fn set(&mut self, name: &str, value: f64) -> bool
    where
        Self: Sized,
    {
        FieldVisitor::collect(self, Some((name, value))).iter().any(|field| field.name == name)
    }
}

/// The type of a parameter, for [`params!`](crate::params).
#[doc(hidden)]
pub trait ParameterValue: PartialEq {
    /// The unit of the number; empty if the declaration has to give it.
    const UNIT: &'static str;
    /// The type of the lowest and the highest value.
    type Bound: Copy;
    /// Returns the number that stands for a bound.
    fn bound(bound: Self::Bound) -> f64;
    /// Returns the number that stands for the value.
    fn number(&self) -> f64;
    /// Returns the value of a number.
    fn from_number(number: f64) -> Self;
}

/// Implements [`ParameterValue`] for a type by its bound, its unit and its conversions.
macro_rules! parameter_value {
    ($type:ty, $bound:ty, $unit:literal, $number:expr, $from:expr) => {
        impl ParameterValue for $type {
            const UNIT: &'static str = $unit;
            type Bound = $bound;
            fn bound(bound: $bound) -> f64 {
                bound as f64
            }
            fn number(&self) -> f64 {
                $number(*self)
            }
            fn from_number(number: f64) -> Self {
                $from(number)
            }
        }
    };
}

parameter_value!(f64, f64, "", |value| value, |number| number);
parameter_value!(usize, usize, "", |value| value as f64, |number| number as usize);
parameter_value!(TimeDelta, f64, "ms", TimeDelta::as_millis_f64, TimeDelta::from_millis_f64);
parameter_value!(Rate, f64, "bit/s", Rate::as_bps_f64, Rate::from_bps_f64);
parameter_value!(DataSize, f64, "B", |size: DataSize| size.as_bytes() as f64, |n| DataSize::from_bytes(n as u64));

/// The texts of a parameter, for [`params!`](crate::params).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The name of the Rust field.
    pub field: &'static str,
    /// The name that `--set` accepts.
    pub name: &'static str,
    /// The unit, if the type has none.
    pub unit: Option<&'static str>,
    /// The doc comment.
    pub doc: &'static str,
    /// The source of the default.
    pub source: Option<&'static str>,
}

/// A parameter of a block that the struct around it offers, for [`params!`](crate::params).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The name of the Rust field.
    pub field: &'static str,
    /// Replaces the name that `--set` accepts.
    pub name: Option<&'static str>,
    /// Replaces the source of the default.
    pub source: Option<&'static str>,
}

/// Visits parameters: records all of them and optionally changes one.
pub struct FieldVisitor<'a> {
    visited: Vec<FieldInfo>,
    /// The name of the parameter to change, and its new value.
    change: Option<(&'a str, f64)>,
    /// While a block is visited: its parameters that are offered, and whether each was found.
    offers: Option<(&'a [Offer], Vec<bool>)>,
}

impl<'a> FieldVisitor<'a> {
    /// Visits `parameters` and returns them with their values before the change.
    fn collect(parameters: &mut impl Parameters, change: Option<(&'a str, f64)>) -> Vec<FieldInfo> {
        let mut fields = Self { visited: Vec::new(), change, offers: None };
        parameters.fields(&mut fields);
        fields.visited
    }

    /// Visits the parameters of a block that are offered.
    ///
    /// # Panics
    /// Panics if the block lacks an offered parameter, or is itself in a block of which only some parameters are offered.
    #[doc(hidden)]
    pub fn block(&mut self, block: &mut impl Parameters, offers: &'static [Offer]) {
        let outer = self.offers.replace((offers, vec![false; offers.len()]));
        assert!(outer.is_none(), "a block whose parameters are offered in part offers a block in part");
        block.fields(self);
        if let Some((offers, found)) = self.offers.take() {
            offers.iter().zip(found).for_each(|(offer, found)| assert!(found, "the block has no `{}`", offer.field));
        }
    }

    /// Visits a parameter with a range.
    #[doc(hidden)]
    pub fn ranged<T: ParameterValue>(&mut self, declared: Declaration, range: RangeInclusive<T::Bound>, value: &mut T) {
        let range = (T::bound(*range.start()), T::bound(*range.end()));
        self.declared(declared, T::UNIT, range, value.number(), |new| *value = T::from_number(new));
    }

    /// Visits one of several values, numbered from 0 in the order of `values`. A value that is not among them counts as
    /// the first.
    #[doc(hidden)]
    pub fn choice<T: Copy + PartialEq>(&mut self, declared: Declaration, values: &[T], value: &mut T) {
        let index = values.iter().position(|one| one == value).unwrap_or(0);
        let last = values.len() - 1;
        self.declared(declared, "", (0.0, last as f64), index as f64, |new| {
            *value = values[((new + 0.5) as usize).min(last)];
        });
    }

    /// Visits a flag: 1 is true, 0 is false.
    #[doc(hidden)]
    pub fn flag(&mut self, declared: Declaration, value: &mut bool) {
        self.choice(declared, &[false, true], value);
    }

    /// Visits a parameter that no [`params!`](crate::params) declares, because its texts are known only at run time.
    pub fn number(&mut self, info: FieldInfo, value: &mut f64) {
        self.visit(info, |new| *value = new);
    }

    fn declared(
        &mut self,
        declared: Declaration,
        unit: &'static str,
        range: (f64, f64),
        default: f64,
        write: impl FnOnce(f64),
    ) {
        let Declaration { field, mut name, doc, mut source, .. } = declared;
        if let Some((offers, found)) = &mut self.offers {
            let Some(index) = offers.iter().position(|offer| offer.field == field) else { return };
            found[index] = true;
            name = offers[index].name.unwrap_or(name);
            source = offers[index].source.or(source);
        }
        let source = description(doc, source);
        self.visit(FieldInfo { name, unit: declared.unit.unwrap_or(unit), source, range, default }, write);
    }

    /// Records a parameter. Calls `write` only if the number changes, so that a conversion never alters a default.
    fn visit(&mut self, info: FieldInfo, write: impl FnOnce(f64)) {
        if let Some((name, new)) = self.change
            && name == info.name
            && new != info.default
        {
            write(new);
        }
        self.visited.push(info);
    }
}

/// Returns a doc comment as a description: without the full stop and the backticks, the first word in lower case unless
/// it is a symbol, and the source in brackets.
fn description(doc: &str, source: Option<&str>) -> String {
    let doc = doc.trim();
    let text = doc.strip_suffix('.').unwrap_or(doc);
    let first = text.chars().next().map_or(0, char::len_utf8);
    let mut text = format!("{}{}", text[..first].to_lowercase(), &text[first..]);
    text.retain(|c| c != '`');
    if let Some(source) = source {
        text = format!("{text} ({source})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Law {
        A,
        B,
        C,
    }

    params! {
        /// A block.
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Part {
            /// Its values.
            const VALUES;

            /// Least size.
            low: f64 = 1.0, unit "B", in 0.0..=9.0, from "eq. 1";
            /// `HIGH` of
            /// the time.
            high as "high_ms": TimeDelta = TimeDelta::from_millis(5), in 0.0..=9.0;
            /// No parameter.
            hidden as _: bool = true;
        }
    }

    params! {
        /// A config.
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Whole {
            /// The default values.
            default const VALUES;

            /// The law.
            law: Law = Law::B, of [Law::A, Law::B, Law::C], from "by design";
            /// Whether it is on.
            on: bool = true;
            /// The block.
            part: Part = Part { low: 2.0, ..Part::VALUES }, block { high as "time_ms": "eq. 2", low };
            /// Number of parts.
            parts: usize = 3, in 1..=4;
        }
    }

    fn lines(fields: &[FieldInfo]) -> Vec<String> {
        let line = |f: &FieldInfo| format!("{} {} {:?} {} {}", f.name, f.unit, f.range, f.default, f.source);
        fields.iter().map(line).collect()
    }

    #[test]
    fn declaration_gives_every_text_in_order() {
        let expected = [
            "law  (0.0, 2.0) 1 the law (by design)",
            "on  (0.0, 1.0) 1 whether it is on",
            "low B (0.0, 9.0) 2 least size (eq. 1)",
            "time_ms ms (0.0, 9.0) 5 HIGH of the time (eq. 2)",
            "parts  (1.0, 4.0) 3 number of parts",
        ];
        assert_eq!(lines(&FieldVisitor::collect(&mut Whole::default(), None)), expected);
        let all = FieldVisitor::collect(&mut Part::VALUES.clone(), None);
        assert_eq!(lines(&all)[1], "high_ms ms (0.0, 9.0) 5 HIGH of the time", "a block alone");
        assert!(all.len() == 2 && Part::VALUES.hidden);
    }

    #[test]
    fn change_sets_the_named_parameter_alone() {
        let mut whole = Whole::VALUES;
        let fields = FieldVisitor::collect(&mut whole, Some(("time_ms", 2.0)));
        assert_eq!(fields[3].default, 5.0, "the value before the change");
        let part = Part { low: 2.0, high: TimeDelta::from_millis(2), hidden: true };
        assert_eq!(whole, Whole { part, ..Whole::VALUES });
        FieldVisitor::collect(&mut whole, Some(("high_ms", 3.0)));
        assert_eq!(whole.part, part, "the name is replaced");
        FieldVisitor::collect(&mut whole, Some(("parts", 4.0)));
        assert_eq!(whole.parts, 4);
    }

    #[test]
    #[should_panic = "the block has no `hihg`"]
    fn unknown_field_in_offers_panics() {
        struct Wrong(Part);
        impl Parameters for Wrong {
            fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
                fields.block(&mut self.0, &[Offer { field: "hihg", name: None, source: None }]);
            }
        }
        FieldVisitor::collect(&mut Wrong(Part::VALUES), None);
    }

    #[test]
    fn choice_rounds_to_the_nearest_index() {
        let chosen = |value| {
            let mut whole = Whole::default();
            FieldVisitor::collect(&mut whole, Some(("law", value)));
            whole.law
        };
        let expected = [Law::A, Law::A, Law::B, Law::B, Law::C, Law::C];
        assert_eq!([0.0, 0.49, 0.5, 1.49, 1.5, 2.0].map(chosen), expected);
    }
}
