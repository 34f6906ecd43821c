//! The answer to one HTTP request: one document at one path.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest request head, bytes.
const HEAD_MAX: usize = 8192;

/// Longest time to receive a request, and to send a part of the answer. Requests are served one after the other.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reads a request and answers it: with the body at this path, and that there is nothing at any other.
///
/// # Errors
/// The client is too slow or leaves early.
pub fn answer(mut stream: TcpStream, path: &str, content_type: &str, body: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (mut head, mut buffer, started) = (Vec::new(), [0; 512], Instant::now());
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut buffer)?;
        if n == 0 || head.len() + n > HEAD_MAX || started.elapsed() > TIMEOUT {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..n]);
    }
    let rest = head.strip_prefix(b"GET ").and_then(|rest| rest.strip_prefix(path.as_bytes()));
    let is_here = rest.and_then(<[u8]>::first).is_some_and(|next| [b' ', b'?'].contains(next));
    let there = format!("see {path}\n");
    let (status, content_type, body) = match is_here {
        true => ("200 OK", content_type, body),
        false => ("404 Not Found", "text/plain", there.as_str()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn only_the_path_has_the_document() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for stream in listener.incoming().take(4).flatten() {
                answer(stream, "/page", "text/html", "<p>").unwrap();
            }
        });
        for (request, status, end) in [
            ("GET /page HTTP/1.1", "200", "<p>"),
            ("GET /page?x HTTP/1.1", "200", "<p>"),
            ("GET /pages HTTP/1.1", "404", "see /page\n"),
            ("POST /page HTTP/1.1", "404", "see /page\n"),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{request}\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")) && text.ends_with(end), "{request}: {text}");
        }
        server.join().unwrap();
    }
}
