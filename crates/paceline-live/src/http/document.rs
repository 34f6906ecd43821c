// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server of one document.

use crate::http::{HttpError, Request, Server, respond};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

/// A document at one path; there is nothing at any other.
#[derive(Clone, Debug)]
pub struct Document<F> {
    pub path: &'static str,
    /// The content type.
    pub kind: &'static str,
    /// Returns the document.
    pub body: F,
}

impl<F: Fn() -> B, B: AsRef<str>> Document<F> {
    /// Serves it until the process ends.
    pub fn serve(self, listener: TcpListener)
    where
        F: Send + Sync + 'static,
    {
        Server::new(listener).run(&AtomicBool::new(false), move |stream, _slot, head| self.answer(stream, head));
    }

    /// Answers a request.
    pub fn answer(&self, stream: &TcpStream, head: &[u8]) -> io::Result<()> {
        let port = stream.local_addr()?.port();
        match Request::parse(head, port) {
            Err(error) => error.send(stream),
            Ok(request) if request.path.split('?').next() != Some(self.path) => {
                respond(stream, "404 Not Found", "text/plain", "", &format!("see {}\n", self.path))
            }
            Ok(request) if request.method != "GET" => HttpError::METHOD_NOT_ALLOWED.send(stream),
            Ok(_) => respond(stream, "200 OK", self.kind, "", (self.body)().as_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::Ipv4Addr;

    #[test]
    fn only_its_path_at_its_host_has_the_document() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let document = Document { path: "/page", kind: "text/html", body: || "<p>" };
        for (request, status, end) in [
            (format!("GET /page HTTP/1.1\r\nHost: {address}\r\n\r\n"), "200", "<p>"),
            (format!("GET /page?x HTTP/1.1\r\nHost: {address}\r\n\r\n"), "200", "<p>"),
            (format!("GET /pages HTTP/1.1\r\nHost: {address}\r\n\r\n"), "404", "see /page\n"),
            (format!("POST /page HTTP/1.1\r\nHost: {address}\r\n\r\n"), "405", "use GET\n"),
            ("GET /page HTTP/1.1\r\nHost: rebound.example\r\n\r\n".to_owned(), "403", "loopback\n"),
            (format!("GET /page HTTP/1.1\r\nHost: {address}\r\nOrigin: null\r\n\r\n"), "403", "loopback\n"),
            ("GET /page\r\n\r\n".to_owned(), "400", "malformed request\n"),
        ] {
            let mut client = TcpStream::connect(address).unwrap();
            document.answer(&listener.accept().unwrap().0, request.as_bytes()).unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")) && text.ends_with(end), "{request}: {text}");
        }
    }
}
