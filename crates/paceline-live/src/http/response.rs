// SPDX-License-Identifier: MIT OR Apache-2.0
//! Responses.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};

/// An error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// Status code.
    pub status: u16,
    /// Reason phrase.
    pub reason: &'static str,
    pub body: &'static str,
}

impl HttpError {
    /// Another method than GET.
    pub const METHOD_NOT_ALLOWED: Self = Self::new(405, "Method Not Allowed", "use GET\n");

    /// Creates an error response.
    pub const fn new(status: u16, reason: &'static str, body: &'static str) -> Self {
        Self { status, reason, body }
    }

    /// Sends it.
    pub fn send(self, stream: &TcpStream) -> io::Result<()> {
        respond(stream, &format!("{} {}", self.status, self.reason), "text/plain; charset=utf-8", "", self.body)
    }
}

/// Sends a response with these further headers, each with its line end, and ends the connection.
pub fn respond(mut stream: &TcpStream, status: &str, kind: &str, headers: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}
