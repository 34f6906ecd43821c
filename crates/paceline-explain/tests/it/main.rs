//! Integration tests, in one binary.

mod confusion;
mod fuzz;
mod generator;
mod readers;
mod samples;
