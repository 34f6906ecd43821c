//! Integration tests: media calls, TCP flows, and damaged input.

mod call;
mod tcp;
