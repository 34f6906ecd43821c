//! Integration tests of scenarios and plans, in one binary.

mod describe;
mod link_control;
