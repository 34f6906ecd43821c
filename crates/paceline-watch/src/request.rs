//! Requests: which are for this page, and what the others are told.
//!
//! The server listens on loopback, but any page in the same browser can reach loopback, too. So a request must know the
//! token that only the printed address has, must name this host (else it came by a name that somebody made point here), and
//! a web socket must come from this page's own origin, for to sockets the same-origin rule does not apply.

use std::io::{self, Read};
use tungstenite::http;

/// A request's head is no longer than this.
const LONGEST: usize = 8192;

/// Headers that a head may have.
const MOST_HEADERS: usize = 64;

/// What is asked for.
#[derive(Debug)]
pub enum Wanted {
    /// The page.
    Page,
    /// The web socket: what the client said, for the handshake.
    Socket(Box<http::Request<()>>),
}

/// Why nothing is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status of the answer.
    pub status: u16,
    /// Its name.
    pub reason: &'static str,
    /// What to know.
    pub why: &'static str,
}

const fn refusal(status: u16, reason: &'static str, why: &'static str) -> Refusal {
    Refusal { status, reason, why }
}

/// Too many pages are open.
pub const BUSY: Refusal = refusal(503, "Service Unavailable", "too many pages watch already; close one\n");
const BAD: Refusal = refusal(400, "Bad Request", "this is no request that could be understood\n");
const FOREIGN: Refusal = refusal(403, "Forbidden", "only the page at the printed address may do this\n");
const NOTHING: Refusal = refusal(404, "Not Found", "there is nothing here but the page at the printed address\n");
const METHOD: Refusal = refusal(405, "Method Not Allowed", "the page is there to be got\n");

/// Who may ask: the port that is listened on, and the token.
#[derive(Debug)]
pub struct Door {
    /// The port.
    pub port: u16,
    /// What the path begins with.
    pub token: String,
}

impl Door {
    /// What a head asks for, or why it gets nothing.
    pub fn judge(&self, head: &[u8]) -> Result<Wanted, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if !request.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
            return Err(BAD);
        }
        let (Some(method), Some(path)) = (request.method, request.path) else { return Err(BAD) };
        if !self.is_this_host(one(request.headers, "host").ok_or(FOREIGN)?) {
            return Err(FOREIGN);
        }
        let rest = path.strip_prefix('/').ok_or(BAD)?;
        let (token, rest) = rest.split_once('/').ok_or(NOTHING)?;
        if token != self.token {
            return Err(FOREIGN);
        }
        match (method, rest) {
            ("GET", "") => Ok(Wanted::Page),
            ("GET", "socket") => {
                let origin = one(request.headers, "origin").ok_or(FOREIGN)?;
                if !origin.strip_prefix("http://").is_some_and(|host| self.is_this_host(host)) {
                    return Err(FOREIGN);
                }
                let mut asked = http::Request::get(path);
                for header in request.headers.iter() {
                    asked = asked.header(header.name, header.value);
                }
                Ok(Wanted::Socket(Box::new(asked.body(()).map_err(|_| BAD)?)))
            }
            (_, "" | "socket") => Err(METHOD),
            _ => Err(NOTHING),
        }
    }

    fn is_this_host(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        matches!(name, "127.0.0.1" | "localhost") && port == self.port.to_string()
    }
}

/// The value of a header that is there once, as text.
fn one<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    match (values.next(), values.next()) {
        (Some(header), None) => std::str::from_utf8(header.value).ok(),
        _ => None,
    }
}

/// Reads a head, to the empty line after it, while `in_time` says so.
///
/// # Errors
/// It is too long, it ends before its end, or it does not come in time.
pub fn read_head(from: &mut impl Read, in_time: impl Fn() -> bool) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = from.read(&mut byte)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&byte[..count]);
        if head.len() > LONGEST {
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

    fn judge(head: &str) -> Result<&'static str, u16> {
        let door = Door { port: 8411, token: "abc".to_owned() };
        match door.judge(head.as_bytes()) {
            Ok(Wanted::Page) => Ok("page"),
            Ok(Wanted::Socket(_)) => Ok("socket"),
            Err(refusal) => Err(refusal.status),
        }
    }

    fn get(path: &str, headers: &str) -> Result<&'static str, u16> {
        judge(&format!("GET {path} HTTP/1.1\r\n{headers}\r\n"))
    }

    #[test]
    fn who_knows_the_token_and_names_this_host_gets_the_page() {
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
        assert_eq!(judge("POST /abc/ HTTP/1.1\r\nHost: 127.0.0.1:8411\r\n\r\n"), Err(405));
    }

    #[test]
    fn a_socket_is_for_the_page_alone() {
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
    fn whatever_comes_is_answered() {
        for head in [
            "",
            "\r\n\r\n",
            "GET",
            "GET  HTTP/1.1\r\n\r\n",
            "\u{0}\u{1}\r\n\r\n",
            "GET x HTTP/1.1\r\nHost: 127.0.0.1:8411\r\n\r\n",
        ] {
            assert_eq!(judge(head), Err(400), "{head:?}");
        }
        let many = "X: y\r\n".repeat(MOST_HEADERS + 1);
        assert_eq!(get("/abc/", &many), Err(400));
        let long = vec![b'x'; LONGEST + 1];
        let read = |mut bytes: &[u8], in_time: bool| read_head(&mut bytes, || in_time).map_err(|error| error.kind());
        assert_eq!(read(&long, true), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b"GET / HTTP/1.1\r\n", true), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n", true).unwrap().len(), 18);
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n", false), Err(io::ErrorKind::TimedOut), "drop by drop");
    }
}
