//! Tests of the public interface.
#![cfg(target_os = "linux")]

mod fuzz;
