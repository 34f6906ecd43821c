//! Sans-IO endpoints of a flow. Under construction.

pub mod source;
