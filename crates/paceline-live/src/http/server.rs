// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections: one thread each, and a bounded number whose request is not complete.

use crate::http::request::{ReadUntil, read_head};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Largest number of connections that have a slot.
const MAX_SLOTS: usize = 64;

/// Longest time to receive a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest time to write to a socket before it is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(3);

/// A server of connections.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    slots: Slots,
    request_timeout: Duration,
}

/// The connections that have a slot, oldest first. Another one beyond the limit closes the oldest, so idle connections keep no client out.
type Slots = Arc<Mutex<VecDeque<Arc<TcpStream>>>>;

/// The slot of a connection, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Slots,
    stream: Arc<TcpStream>,
}

impl Server {
    /// Creates a server of this listener.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, slots: Slots::default(), request_timeout: REQUEST_TIMEOUT }
    }

    /// Calls `serve` with each connection, its slot and the head of its request, on a thread of its own. Returns at the next connection
    /// after `closing` is set.
    pub fn run<F>(&self, closing: &AtomicBool, serve: F)
    where
        F: Fn(&TcpStream, Slot, &[u8]) -> io::Result<()> + Send + Sync + 'static,
    {
        let serve = Arc::new(serve);
        for stream in self.listener.incoming() {
            if closing.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let slot = Slot::take(&self.slots, stream);
            let (serve, until) = (serve.clone(), Instant::now() + self.request_timeout);
            let handle = move || {
                // An error affects only this connection.
                let _ = connection(slot, until, &*serve);
            };
            // If no thread can be started, the connection is closed.
            let _ = thread::Builder::new().name("http".to_owned()).spawn(handle);
        }
    }
}

/// Answers a request: the connection, its slot, and the bytes that were read.
type Serve = dyn Fn(&TcpStream, Slot, &[u8]) -> io::Result<()>;

fn connection(slot: Slot, until: Instant, serve: &Serve) -> io::Result<()> {
    let stream = slot.stream.clone();
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let head = read_head(&mut ReadUntil { stream: &stream, until })?;
    serve(&stream, slot, &head)
}

impl Slot {
    fn take(slots: &Slots, stream: TcpStream) -> Self {
        let stream = Arc::new(stream);
        let mut taken = slots.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= MAX_SLOTS
            && let Some(oldest) = taken.pop_front()
        {
            // Its thread notices.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        taken.push_back(stream.clone());
        drop(taken);
        Self { slots: slots.clone(), stream }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|stream| !Arc::ptr_eq(stream, &self.stream));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Document;
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;

    /// Returns how many of these connections the server has closed.
    fn closed(idle: &[TcpStream]) -> usize {
        let is_closed = |mut stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            !matches!(stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        };
        idle.iter().filter(|stream| is_closed(stream)).count()
    }

    #[test]
    fn the_oldest_idle_connections_make_room() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        // Time closes none of them.
        let server = Server { request_timeout: Duration::from_secs(3600), ..Server::new(listener) };
        let slots = server.slots.clone();
        let document = Document { path: "/page", kind: "text/html", body: || "<p>".to_owned() };
        thread::spawn(move || {
            server.run(&AtomicBool::new(false), move |stream, _slot, head| document.answer(stream, head))
        });
        let get = || {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET /page HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let mut idle: Vec<TcpStream> = (0..MAX_SLOTS / 2).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(get().starts_with("HTTP/1.1 200 "));
        assert_eq!(closed(&idle), 0, "there is room");
        idle.extend((0..200).map(|_| TcpStream::connect(address).unwrap()));
        assert!(get().starts_with("HTTP/1.1 200 "));
        let open = slots.lock().unwrap().len();
        assert!((MAX_SLOTS - 1..=MAX_SLOTS).contains(&open), "{open}");
        let (old, new) = idle.split_at(idle.len() + 1 - MAX_SLOTS);
        assert_eq!((closed(old), closed(new)), (old.len(), 0), "the oldest ones only");
    }
}
