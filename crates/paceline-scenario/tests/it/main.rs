//! Integration tests of scenarios and plans, in one binary.

mod conditions;
mod describe;
mod link_control;
