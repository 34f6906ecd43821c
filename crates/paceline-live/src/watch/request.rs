// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks access to the page: a request must contain the secret token of the printed address, and a web socket the page's own origin,
//! because the same-origin policy does not cover web sockets.

use crate::http::{HttpError, Request};
use tungstenite::http;

/// The requested resource.
#[derive(Debug)]
pub enum Resource {
    Page,
    /// The web socket, with the request for the handshake.
    Socket(Box<http::Request<()>>),
}

/// Too many pages are open.
pub const BUSY: HttpError = HttpError::new(503, "Service Unavailable", "too many open pages; close one\n");
const BAD_REQUEST: HttpError = HttpError::new(400, "Bad Request", "malformed request\n");
const FORBIDDEN: HttpError = HttpError::new(403, "Forbidden", "open the page at the printed address\n");
const NOT_FOUND: HttpError = HttpError::new(404, "Not Found", "open the page at the printed address\n");

/// The port and the secret token that a request must contain.
#[derive(Debug)]
pub struct AccessControl {
    /// Port of the server.
    pub port: u16,
    /// First segment of the path.
    pub token: String,
}

impl AccessControl {
    /// Returns the resource that a request head may access.
    ///
    /// # Errors
    /// The response to an invalid or forbidden request.
    pub fn authorize(&self, head: &[u8]) -> Result<Resource, HttpError> {
        let Request { method, path, headers, has_origin } = Request::parse(head, self.port)?;
        let rest = path.strip_prefix('/').ok_or(BAD_REQUEST)?;
        let (token, rest) = rest.split_once('/').ok_or(NOT_FOUND)?;
        if token != self.token {
            return Err(FORBIDDEN);
        }
        match (method, rest) {
            ("GET", "") => Ok(Resource::Page),
            ("GET", "socket") => {
                if !has_origin {
                    return Err(FORBIDDEN);
                }
                let mut handshake = http::Request::get(path);
                for header in headers {
                    handshake = handshake.header(header.name, header.value);
                }
                Ok(Resource::Socket(Box::new(handshake.body(()).map_err(|_| BAD_REQUEST)?)))
            }
            (_, "" | "socket") => Err(HttpError::METHOD_NOT_ALLOWED),
            _ => Err(NOT_FOUND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorize(head: &str) -> Result<&'static str, u16> {
        let access = AccessControl { port: 8411, token: "abc".to_owned() };
        match access.authorize(head.as_bytes()) {
            Ok(Resource::Page) => Ok("page"),
            Ok(Resource::Socket(_)) => Ok("socket"),
            Err(error) => Err(error.status),
        }
    }

    fn get(path: &str, headers: &str) -> Result<&'static str, u16> {
        authorize(&format!("GET {path} HTTP/1.1\r\n{headers}\r\n"))
    }

    #[test]
    fn page_requires_token_and_host() {
        assert_eq!(get("/abc/", "Host: 127.0.0.1:8411\r\n"), Ok("page"));
        for (path, host, status) in [
            ("/abc/", "Host: rebound.example:8411\r\n", 403),
            ("/abd/", "Host: 127.0.0.1:8411\r\n", 403),
            ("//", "Host: 127.0.0.1:8411\r\n", 403),
            ("/", "Host: 127.0.0.1:8411\r\n", 404),
            ("x", "Host: 127.0.0.1:8411\r\n", 400),
            ("/abc", "Host: 127.0.0.1:8411\r\n", 404),
            ("/favicon.ico", "Host: 127.0.0.1:8411\r\n", 404),
            ("/abc/other", "Host: 127.0.0.1:8411\r\n", 404),
        ] {
            assert_eq!(get(path, host), Err(status), "{path} {host}");
        }
        assert_eq!(authorize("POST /abc/ HTTP/1.1\r\nHost: 127.0.0.1:8411\r\n\r\n"), Err(405));
    }

    #[test]
    fn socket_requires_the_origin_of_the_page() {
        let host = "Host: 127.0.0.1:8411\r\n";
        let socket = |origin: &str| get("/abc/socket", &format!("{host}{origin}"));
        assert_eq!(socket("Origin: http://127.0.0.1:8411\r\n"), Ok("socket"));
        for origin in ["", "Origin: http://evil.example\r\n"] {
            assert_eq!(socket(origin), Err(403), "{origin}");
        }
        let page = "Origin: http://127.0.0.1:8411\r\n";
        assert_eq!(get("/abd/socket", &format!("{host}{page}")), Err(403));
    }
}
