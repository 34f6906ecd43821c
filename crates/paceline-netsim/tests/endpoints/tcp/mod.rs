// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP senders and receivers over a small test network.

mod allocations;
mod bad_networks;
mod bbr;
mod harness;
mod ns3;
mod single_sender;
mod window_based;
