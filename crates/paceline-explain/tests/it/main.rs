//! Integration tests, in one binary.

mod confusion;
mod fit;
mod fuzz;
mod generator;
mod readers;
mod redaction;
mod samples;
