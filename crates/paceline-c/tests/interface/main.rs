// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the interface, called as a program in C calls them. All pointers that `harness` and `catalogue` pass are valid, or
//! null where a test is about that.
#![allow(unsafe_code, reason = "the interface takes pointers")]

mod catalogue;
mod fuzz;
mod harness;
mod limits;
mod receiver;
mod rfc8888;
mod sender;
mod signals;
