//! The functions of the interface, called as a program in C calls them.
#![allow(unsafe_code, reason = "the interface takes pointers")]

mod catalogue;
mod harness;
mod limits;
mod receiver;
mod rfc8888;
mod sender;
mod signals;
