// SPDX-License-Identifier: MIT OR Apache-2.0
//! Integration tests: media calls, TCP flows, and damaged input.

mod call;
mod tcp;
