// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses requests and checks their host and origin.

use crate::http::HttpError;
use std::io::{self, Read};
use std::net::{IpAddr, TcpStream};
use std::time::Instant;

/// Largest length of a request head, bytes.
const MAX_HEAD: usize = 8192;

const MAX_HEADERS: usize = 64;

/// The port of HTTP, which clients leave out of the host.
const HTTP_PORT: u16 = 80;

const BAD_REQUEST: HttpError = HttpError::new(400, "Bad Request", "malformed request\n");
const FORBIDDEN: HttpError = HttpError::new(
    403,
    "Forbidden",
    "use the printed address: host and origin must be localhost or another name of the loopback\n",
);

/// A request for this server.
#[derive(Debug)]
pub struct Request<'a> {
    /// Method, such as `GET`.
    pub method: &'a str,
    /// Path, with the query.
    pub path: &'a str,
    pub headers: Vec<httparse::Header<'a>>,
    /// Whether a page of this server makes the request, rather than a user or a program.
    pub has_origin: bool,
}

impl<'a> Request<'a> {
    /// Parses the head of a request to the server at this port.
    ///
    /// # Errors
    /// The response to a malformed request, or to one whose host or origin is not this server.
    pub fn parse(head: &'a [u8], port: u16) -> Result<Self, HttpError> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if !request.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
            return Err(BAD_REQUEST);
        }
        let (Some(method), Some(path)) = (request.method, request.path) else { return Err(BAD_REQUEST) };
        let headers = request.headers.to_vec();
        if !unique(&headers, "host")?.is_some_and(|host| is_this_host(host, port)) {
            return Err(FORBIDDEN);
        }
        let origin = unique(&headers, "origin")?;
        let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| is_this_host(host, port));
        match origin.is_none_or(is_own) {
            true => Ok(Self { method, path, headers, has_origin: origin.is_some() }),
            false => Err(FORBIDDEN),
        }
    }
}

/// Returns whether a host with its port is the loopback at this port. A name other than `localhost` may be that of a foreign page,
/// whatever its address is.
fn is_this_host(host: &str, port: u16) -> bool {
    let (name, given) = match host.rsplit_once(':') {
        Some((name, given)) if !given.contains(']') => (name, given.parse().ok()),
        _ => (host, Some(HTTP_PORT)),
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    (is_loopback || name.eq_ignore_ascii_case("localhost")) && given == Some(port)
}

/// Returns the value of a header that occurs at most once.
fn unique<'a>(headers: &[httparse::Header<'a>], name: &str) -> Result<Option<&'a str>, HttpError> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    match (values.next(), values.next()) {
        (first, None) => first.map(|header| std::str::from_utf8(header.value)).transpose().map_err(|_| FORBIDDEN),
        _ => Err(FORBIDDEN),
    }
}

/// Reads a request head up to its empty line.
///
/// # Errors
/// The head is too long or incomplete.
pub(crate) fn read_head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut bytes = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&bytes[..count]);
        if head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

/// A stream from which nothing is read after a time, however slowly its bytes come.
pub(crate) struct ReadUntil<'a> {
    pub(crate) stream: &'a TcpStream,
    /// The time.
    pub(crate) until: Instant,
}

impl Read for ReadUntil<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    fn parse(headers: &str) -> Result<bool, u16> {
        let head = format!("GET /path HTTP/1.1\r\n{headers}\r\n");
        let request = Request::parse(head.as_bytes(), 8411).map_err(|error| error.status)?;
        assert_eq!((request.method, request.path), ("GET", "/path"));
        Ok(request.has_origin)
    }

    #[test]
    fn host_is_the_loopback_at_this_port() {
        for host in ["127.0.0.1:8411", "localhost:8411", "LOCALHOST:8411", "127.0.0.9:8411", "[::1]:8411"] {
            assert_eq!(parse(&format!("host: {host}\r\n")), Ok(false), "{host}");
        }
        for host in [
            "127.0.0.1:8412",
            "127.0.0.1",
            "[::1]",
            "::1:8412",
            "192.0.2.1:8411",
            "rebound.example:8411",
            "localhost.rebound.example:8411",
            "127.0.0.1.rebound.example:8411",
            "127.0.0.1:8411\r\nHost: rebound.example:8411",
            "",
        ] {
            assert_eq!(parse(&format!("Host: {host}\r\n")), Err(403), "{host}");
        }
        assert_eq!(parse(""), Err(403), "no host");
        assert!(is_this_host("localhost", 80) && !is_this_host("localhost", 8080), "80 may be left out");
    }

    #[test]
    fn origin_is_this_server_or_absent() {
        let of = |origin: &str| parse(&format!("Host: 127.0.0.1:8411\r\n{origin}"));
        assert_eq!(of("Origin: http://127.0.0.1:8411\r\n"), Ok(true));
        assert_eq!(of("Origin: http://localhost:8411\r\n"), Ok(true));
        for origin in ["null", "http://127.0.0.1:80", "https://127.0.0.1:8411", "http://evil.example"] {
            assert_eq!(of(&format!("Origin: {origin}\r\n")), Err(403), "{origin}");
        }
        assert_eq!(of("Origin: http://127.0.0.1:8411\r\nOrigin: http://evil.example\r\n"), Err(403));
    }

    #[test]
    fn rejects_malformed_and_long_requests() {
        for head in ["", "\r\n\r\n", "GET", "GET  HTTP/1.1\r\n\r\n", "\u{0}\u{1}\r\n\r\n"] {
            assert_eq!(Request::parse(head.as_bytes(), 8411).unwrap_err().status, 400, "{head:?}");
        }
        assert_eq!(parse(&"X: y\r\n".repeat(MAX_HEADERS + 1)), Err(400));
        let read = |mut bytes: &[u8]| read_head(&mut bytes).map_err(|error| error.kind());
        assert_eq!(read(&[b'x'; MAX_HEAD + 1]), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b"GET / HTTP/1.1\r\n"), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n").unwrap().len(), 18);
    }

    #[test]
    fn a_head_has_a_deadline_as_a_whole() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let read = |until| read_head(&mut ReadUntil { stream: &stream, until });
        assert_eq!(read(Instant::now()).unwrap_err().kind(), io::ErrorKind::TimedOut, "although it is there");
        assert_eq!(read(Instant::now() + Duration::from_secs(60)).unwrap().len(), 18);
    }
}
