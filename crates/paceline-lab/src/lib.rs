//! Under construction.

pub mod trace;
