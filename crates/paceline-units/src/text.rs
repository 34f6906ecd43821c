// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serde and JSON Schema: a quantity is a string with its unit, a codepoint its name.

use crate::{DataSize, Dscp, Fraction, Rate, Time, TimeDelta};
use core::fmt;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

macro_rules! text {
    ($name:ident, $what:literal, $example:literal) => {
        text!($name, $what, " with its unit", $example);
    };
    ($name:ident, $what:literal, $form:literal, $example:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, $form, ", like \"", $example, "\""))
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!($what, $form),
                    "examples": [$example]
                })
            }
        }
    };
}
text!(TimeDelta, "a time", "300 ms");
text!(Time, "a time since the start", "50 s");
text!(Rate, "a rate", "2.5 Mbps");
text!(DataSize, "a size", "60 KB");
text!(Fraction, "a fraction", "5 %");
text!(Dscp, "a DSCP", " by its name or number", "AF41");
