// SPDX-License-Identifier: MIT OR Apache-2.0
//! The declaration of parameters.

/// Declares a struct of parameters, each once: its field with type and doc comment, its name, unit, default, range and
/// source. Implements [`Parameters`](crate::Parameters).
///
/// ```
/// use paceline::{Parameters, params};
/// use paceline_units::TimeDelta;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// pub enum Law { Linear, Cubic }
///
/// params! {
///     /// The parameters of the loss controller.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct LossConfig {
///         /// The values of the paper.
///         default const PAPER;
///
///         /// Weight of the newest report.
///         alpha: f64 = 0.1, in 0.0..=1.0, from "mmsys16, equation 5";
///         /// Shortest time between two decreases.
///         hold as "hold_ms": TimeDelta = TimeDelta::from_millis(300), in 0.0..=1e4, from "section 3";
///         /// Frames per second.
///         fps: f64 = 30.0, unit "1/s", in 1.0..=1e3;
///         /// Whether lost packets count twice.
///         twice: bool = false;
///         /// Law of growth; 0: linear, 1: cubic.
///         law: Law = Law::Linear, of [Law::Linear, Law::Cubic];
///     }
/// }
///
/// let config = LossConfig { alpha: 0.2, ..LossConfig::default() };
/// assert_eq!(config.hold, LossConfig::PAPER.hold);
/// ```
///
/// | part of a line | meaning |
/// |---|---|
/// | doc comment | the description; the reference shows it with a first word in lower case, unless that is in backticks |
/// | `as "NAME"` | the name that `--set` accepts, if it is not that of the field |
/// | `as _` | the field is no parameter |
/// | `unit "UNIT"` | the unit, if the type has none: times count in ms, rates in bit/s, sizes in B |
/// | `in LOW..=HIGH` | the valid values |
/// | `of [A, B]` | the values of a choice, numbered from 0; a flag has neither `in` nor `of` |
/// | `from "SOURCE"` | the source of the default |
/// | `block all` | the field is a struct of parameters, all of which are offered |
/// | `block { FIELD, FIELD as "NAME": "SOURCE" }` | those that are offered, in the order of the block; name and source replace those of the block |
///
/// `const NAME;` declares the constant of the default values, `default const NAME;` implements [`Default`] as well.
/// Further tables of values are constants of the usual form: `const Y2024: Self = Self { alpha: 0.2, ..Self::PAPER }`.
#[macro_export]
macro_rules! params {
    (
        @fields $field_vis:vis,
        $(#[$meta:meta])*
        $vis:vis struct $config:ident {
            $(#[$table_meta:meta])*
            default const $table:ident;
            $($rows:tt)*
        }
    ) => {
        $crate::params! {
            @fields $field_vis,
            $(#[$meta])*
            $vis struct $config {
                $(#[$table_meta])*
                const $table;
                $($rows)*
            }
        }

        impl ::core::default::Default for $config {
            fn default() -> Self {
                Self::$table
            }
        }
    };
    (
        @fields $field_vis:vis,
        $(#[$meta:meta])*
        $vis:vis struct $config:ident {
            $(#[$table_meta:meta])*
            const $table:ident;
            $(
                $(#[doc = $doc:literal])+
                $field:ident $(as $name:tt)? : $type:ty = $value:expr
                $(, unit $unit:literal)?
                $(, in $range:expr)?
                $(, of $choices:expr)?
                $(, block $offers:tt)?
                $(, from $source:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $config {
            $(
                $(#[doc = $doc])+
                #[doc = $crate::params!(@note [$field $(as $name)?] [$value] [$($range)?] [$($source)?] $(block $offers)?)]
                $field_vis $field: $type,
            )*
        }

        impl $config {
            $(#[$table_meta])*
            $field_vis const $table: Self = Self { $($field: $value),* };
        }

        impl $crate::Parameters for $config {
            fn fields(&mut self, fields: &mut $crate::FieldVisitor<'_>) {
                $(
                    $crate::params!(
                        @visit fields, self.$field, [$field $(as $name)?] [$($doc)+] [$($unit)?] [$($source)?]
                        $(in $range)? $(of $choices)? $(block $offers)?
                    );
                )*
            }
        }
    };

    (@visit $fields:ident, $value:expr, [$field:ident as _] $($rest:tt)*) => {};
    (@visit $fields:ident, $value:expr, $names:tt $doc:tt $unit:tt $source:tt block all) => {
        $crate::Parameters::fields(&mut $value, $fields);
    };
    (
        @visit $fields:ident, $value:expr, $names:tt $doc:tt $unit:tt $source:tt
        block { $($field:ident $(as $name:literal)? $(: $offered:literal)?),* $(,)? }
    ) => {
        $fields.block(
            &mut $value,
            &[$($crate::Offer {
                field: ::core::stringify!($field),
                name: $crate::params!(@option [$($name)?]),
                source: $crate::params!(@option [$($offered)?]),
            }),*],
        );
    };
    (@visit $fields:ident, $value:expr, $names:tt $doc:tt $unit:tt $source:tt in $range:expr) => {
        $fields.ranged($crate::params!(@declaration $names $doc $unit $source), $range, &mut $value);
    };
    (@visit $fields:ident, $value:expr, $names:tt $doc:tt $unit:tt $source:tt of $choices:expr) => {
        $fields.choice($crate::params!(@declaration $names $doc $unit $source), &$choices, &mut $value);
    };
    (@visit $fields:ident, $value:expr, $names:tt $doc:tt $unit:tt $source:tt) => {
        $fields.flag($crate::params!(@declaration $names $doc $unit $source), &mut $value);
    };
    (@note [$field:ident as _] $($rest:tt)*) => { "" };
    (@note $names:tt $value:tt $range:tt $source:tt block $offers:tt) => { "" };
    (@note [$field:ident $(as $name:literal)?] [$value:expr] [$($range:expr)?] [$($source:literal)?]) => {
        ::core::concat!(
            "\n\nParameter `", $crate::params!(@first [$($name)? ::core::stringify!($field)]), "`, default `",
            ::core::stringify!($value), "`", $(", range `", ::core::stringify!($range), "`",)? $(" (", $source, ")",)? "."
        )
    };
    (@declaration [$field:ident $(as $name:literal)?] [$($doc:literal)+] $unit:tt $source:tt) => {
        $crate::Declaration {
            field: ::core::stringify!($field),
            name: $crate::params!(@first [$($name)? ::core::stringify!($field)]),
            unit: $crate::params!(@option $unit),
            doc: ::core::concat!($($doc),+),
            source: $crate::params!(@option $source),
        }
    };
    (@first [$name:literal $($rest:tt)*]) => { $name };
    (@first [$($name:tt)*]) => { $($name)* };
    (@option []) => { ::core::option::Option::None };
    (@option [$value:literal]) => { ::core::option::Option::Some($value) };
    ($(#[$meta:meta])* $vis:vis struct $($declaration:tt)*) => {
        $crate::params! { @fields pub, $(#[$meta])* $vis struct $($declaration)* }
    };
}

/// Declares the config of a registered controller: [`params!`] with fields that are public only with the feature
/// `unstable-internals`, because they follow the algorithm.
#[cfg(feature = "unstable-internals")]
macro_rules! config {
    ($($declaration:tt)*) => { $crate::params! { @fields pub, $($declaration)* } };
}
#[cfg(not(feature = "unstable-internals"))]
macro_rules! config {
    ($($declaration:tt)*) => { $crate::params! { @fields pub(crate), $($declaration)* } };
}
pub(crate) use config;
