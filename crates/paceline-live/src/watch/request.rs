//! Parses requests and checks access.
//!
//! The server listens on loopback, which every page in the same browser can reach. A request must therefore contain the
//! secret token of the printed address and the host name of this server (against DNS rebinding). A web socket must have the
//! page's own origin, because the same-origin policy does not cover web sockets.

use std::io::{self, Read};
use tungstenite::http;

/// Largest length of a request head, bytes.
const MAX_HEAD: usize = 8192;

const MAX_HEADERS: usize = 64;

/// The requested resource.
#[derive(Debug)]
pub enum Resource {
    /// The page.
    Page,
    /// The web socket, with the request for the handshake.
    Socket(Box<http::Request<()>>),
}

/// An error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// Status code.
    pub status: u16,
    /// Reason phrase.
    pub reason: &'static str,
    /// Body.
    pub body: &'static str,
}

const fn error(status: u16, reason: &'static str, body: &'static str) -> HttpError {
    HttpError { status, reason, body }
}

/// Too many pages are open.
pub const BUSY: HttpError = error(503, "Service Unavailable", "too many open pages; close one\n");
const BAD_REQUEST: HttpError = error(400, "Bad Request", "malformed request\n");
const FORBIDDEN: HttpError = error(403, "Forbidden", "open the page at the printed address\n");
const NOT_FOUND: HttpError = error(404, "Not Found", "open the page at the printed address\n");
const METHOD_NOT_ALLOWED: HttpError = error(405, "Method Not Allowed", "use GET\n");

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
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if !request.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
            return Err(BAD_REQUEST);
        }
        let (Some(method), Some(path)) = (request.method, request.path) else { return Err(BAD_REQUEST) };
        if !self.is_this_host(unique_header(request.headers, "host").ok_or(FORBIDDEN)?) {
            return Err(FORBIDDEN);
        }
        let rest = path.strip_prefix('/').ok_or(BAD_REQUEST)?;
        let (token, rest) = rest.split_once('/').ok_or(NOT_FOUND)?;
        if token != self.token {
            return Err(FORBIDDEN);
        }
        match (method, rest) {
            ("GET", "") => Ok(Resource::Page),
            ("GET", "socket") => {
                let origin = unique_header(request.headers, "origin").ok_or(FORBIDDEN)?;
                if !origin.strip_prefix("http://").is_some_and(|host| self.is_this_host(host)) {
                    return Err(FORBIDDEN);
                }
                let mut handshake = http::Request::get(path);
                for header in request.headers.iter() {
                    handshake = handshake.header(header.name, header.value);
                }
                Ok(Resource::Socket(Box::new(handshake.body(()).map_err(|_| BAD_REQUEST)?)))
            }
            (_, "" | "socket") => Err(METHOD_NOT_ALLOWED),
            _ => Err(NOT_FOUND),
        }
    }

    fn is_this_host(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        matches!(name, "127.0.0.1" | "localhost") && port == self.port.to_string()
    }
}

/// Returns the value of a header that occurs exactly once.
fn unique_header<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    match (values.next(), values.next()) {
        (Some(header), None) => std::str::from_utf8(header.value).ok(),
        _ => None,
    }
}

/// Reads a request head up to its empty line while `in_time` returns true.
///
/// # Errors
/// The head is too long, incomplete, or too late.
pub fn read_head(from: &mut impl Read, in_time: impl Fn() -> bool) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = from.read(&mut byte)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&byte[..count]);
        if head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if !in_time() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(head)
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
        assert_eq!(get("/abc/", "host: localhost:8411\r\n"), Ok("page"));
        for (path, host, status) in [
            ("/abc/", "Host: 127.0.0.1:8412\r\n", 403),
            ("/abc/", "Host: 127.0.0.1\r\n", 403),
            ("/abc/", "Host: rebound.example:8411\r\n", 403),
            ("/abc/", "Host: 127.0.0.1:8411\r\nHost: rebound.example:8411\r\n", 403),
            ("/abc/", "", 403),
            ("/abd/", "Host: 127.0.0.1:8411\r\n", 403),
            ("//", "Host: 127.0.0.1:8411\r\n", 403),
            ("/", "Host: 127.0.0.1:8411\r\n", 404),
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
        assert_eq!(socket("Origin: http://localhost:8411\r\n"), Ok("socket"));
        for origin in ["", "Origin: null\r\n", "Origin: http://127.0.0.1:80\r\n", "Origin: http://evil.example\r\n"] {
            assert_eq!(socket(origin), Err(403), "{origin}");
        }
        let page = "Origin: http://127.0.0.1:8411\r\n";
        assert_eq!(socket(&format!("{page}Origin: http://evil.example\r\n")), Err(403));
        assert_eq!(get("/abd/socket", &format!("{host}{page}")), Err(403));
    }

    #[test]
    fn rejects_malformed_long_and_slow_requests() {
        for head in [
            "",
            "\r\n\r\n",
            "GET",
            "GET  HTTP/1.1\r\n\r\n",
            "\u{0}\u{1}\r\n\r\n",
            "GET x HTTP/1.1\r\nHost: 127.0.0.1:8411\r\n\r\n",
        ] {
            assert_eq!(authorize(head), Err(400), "{head:?}");
        }
        let many = "X: y\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(get("/abc/", &many), Err(400));
        let long = vec![b'x'; MAX_HEAD + 1];
        let read = |mut bytes: &[u8], in_time: bool| read_head(&mut bytes, || in_time).map_err(|error| error.kind());
        assert_eq!(read(&long, true), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b"GET / HTTP/1.1\r\n", true), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n", true).unwrap().len(), 18);
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n", false), Err(io::ErrorKind::TimedOut), "too slow");
    }
}
