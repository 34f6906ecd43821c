// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chainable setters of public fields, for structs that programs create with `new`.

/// Declares `with_*` methods. Each sets the field of this name.
macro_rules! setters {
    ($($setter:ident($field:ident: $type:ty)),+ $(,)?) => {$(
        #[doc = concat!("Returns the value with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[inline]
        pub const fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )+};
}

pub(crate) use setters;
