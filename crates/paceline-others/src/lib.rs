// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers of other libraries, each as a Paceline controller, so that suites judge them like those of this library.
//!
//! ```text
//! flow ──▶ SendHalf of this crate ──translation──▶ the other library
//!                                  ◀─────────────
//! ```
//!
//! The shipped command does not depend on this crate. Its program `others` runs suites with them, and writes the document of
//! `paceline suite`, in which their rows have the kind
//! [`OtherImplementation`](paceline_lab::results::RowKind::OtherImplementation).
//!
//! Each file begins with a table of what is translated into what, and of what is lost. Common to both:
//!
//! * The flow has the packet history, the pacer, RTX, FEC and the encoder: those of this library, as for every controller. A row
//!   shows the estimator of the other library, not its call stack.
//! * Paceline's [guard](paceline::Guard) against missing feedback is absent, because it is no part of the other library.
//! * The rates are those on the network, IP and UDP headers included.
//! * A call cannot be branched, because the libraries offer no copies of their state.
//!
//! [`conformance`] passes the same inputs through GoogCC and through another port of it.

pub mod conformance;
mod goog_cc_half;
mod rtc_interceptor_half;
mod time;

use paceline::Registry;
use paceline_lab::results::RowKind;
use paceline_lab::suite::Subject;

/// The names of the other implementations, in order of the registry.
pub const OTHERS: [&str; 2] = [goog_cc_half::NAME, rtc_interceptor_half::NAME];

/// Returns the registry with the other implementations after its own.
///
/// # Panics
/// Panics if one of the names is taken.
pub fn add(mut registry: Registry) -> Registry {
    [goog_cc_half::entry(), rtc_interceptor_half::entry()].into_iter().for_each(|entry| registry.add(entry));
    registry
}

/// Returns a subject of suites: an other implementation, or a controller of the registry.
pub fn subject(name: &str, registry: &Registry) -> Subject {
    if OTHERS.contains(&name) {
        return Subject { name: name.to_owned(), kind: RowKind::OtherImplementation, oracle: None };
    }
    Subject::controller(name, registry)
}
