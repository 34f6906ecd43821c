// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP/1.1 on the loopback, for programs and browsers of this host.
//!
//! Every page in a browser of this host can reach a port of the loopback. A request must therefore have the name of the loopback as its
//! host (against DNS rebinding), and no origin but this server.

mod document;
mod request;
mod response;
mod server;

pub use document::Document;
pub use request::Request;
pub use response::{HttpError, respond};
pub use server::{Server, Slot};
