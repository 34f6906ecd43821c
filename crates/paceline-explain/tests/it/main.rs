//! Integration tests, in one binary.

mod generator;
