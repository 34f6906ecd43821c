// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that touch the world outside the program, in real time.
//!
//! * [`testbed`]: scenarios over network devices, kernel TCP and UDP sockets (Linux);
//! * [`hosts`]: media flows between two hosts over UDP (Linux);
//! * [`watch`]: a page on which people watch a run and move its link;
//! * [`external`]: controllers in other programs and in shared libraries (Unix);
//! * `http`: a server on the loopback.
//!
//! Each module is a feature of the same name, so that its dependencies are compiled for those who use it.

// Other programs embed `paceline`, not this crate: what a name says needs no comment.
#![allow(missing_docs)]

#[cfg(all(unix, feature = "external"))]
pub mod external;
#[cfg(all(target_os = "linux", feature = "hosts"))]
pub mod hosts;
#[cfg(feature = "http")]
pub mod http;
#[cfg(all(target_os = "linux", feature = "testbed"))]
pub mod testbed;
#[cfg(feature = "watch")]
pub mod watch;
