// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of the TCP flow beside the media: a thread that discards what arrives and counts it.
//!
//! Its port is open from the start of a session to the first connection that proves that it is the session's, and no longer than the
//! session.

use crate::hosts::seal::Proofs;
use crate::testbed::clock::Monotonic;
use crate::testbed::timing::Timing;
use paceline_units::{Time, TimeDelta};
use serde::Serialize;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// Maximum number of connections that have not proved yet that they are the session's; further ones are closed.
const UNPROVED_MAX: usize = 8;

/// Time in which a connection must prove it: some retransmissions of its first segment (RFC 6298: 1 s, 2 s).
const PROOF_TIME: TimeDelta = TimeDelta::from_secs(5);

/// Longest wait, so that the end of the session is noticed.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(20);

/// Size of one read, bytes.
const READ: usize = 1 << 16;

/// What arrived over TCP in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TcpTotals {
    /// Bytes of the session's connection, without headers and proof; `None` if there was no such connection.
    #[serde(rename = "received_bytes")]
    pub bytes: Option<u64>,
    /// Connections that were closed without a proof.
    #[serde(rename = "refused_connections")]
    pub refused: u64,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    is_proved: AtomicBool,
    bytes: AtomicU64,
    refused: AtomicU64,
}

/// The TCP flow of one session.
struct Job {
    listener: TcpListener,
    peer: IpAddr,
    proofs: Proofs,
    shared: Arc<Shared>,
    /// Dropped when the port and the connection are closed.
    _done: mpsc::Sender<()>,
}

/// The thread. It ends when this is dropped.
pub(crate) struct TcpReceiver(mpsc::Sender<Job>);

impl TcpReceiver {
    /// Starts the thread, which has the priority of the calling one.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let serve = move || {
            while let Ok(Job { listener, peer, proofs, shared, _done }) = jobs.recv() {
                if let Some(stream) = accept(listener, peer, &proofs, &shared) {
                    discard(stream, &shared);
                }
            }
        };
        thread::Builder::new().name("tcp".to_owned()).spawn(serve)?;
        Ok(Self(sender))
    }

    /// Opens a TCP port at `at`, with its number if that is free, else with any, for one connection from `peer`.
    pub(crate) fn open(&self, at: SocketAddr, peer: IpAddr, proofs: Proofs) -> io::Result<TcpSession> {
        let listener = TcpListener::bind(at).or_else(|_| TcpListener::bind((at.ip(), 0)))?;
        listener.set_nonblocking(true)?;
        let (port, shared, (_done, done)) = (listener.local_addr()?.port(), Arc::default(), mpsc::channel());
        let job = Job { listener, peer, proofs, shared: Arc::clone(&shared), _done };
        self.0.send(job).map_err(|_| io::Error::other("the thread has ended"))?;
        Ok(TcpSession { port, shared, done })
    }
}

/// The receiving end of the TCP flow of a session.
pub(crate) struct TcpSession {
    port: u16,
    shared: Arc<Shared>,
    done: mpsc::Receiver<()>,
}

impl TcpSession {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Closes port and connection, and returns what arrived.
    pub(crate) fn finish(&mut self) -> TcpTotals {
        self.shared.over.store(true, Ordering::Relaxed);
        // It sends nothing: this returns when the thread is done.
        let _ = self.done.recv();
        let Shared { is_proved, bytes, refused, .. } = &*self.shared;
        TcpTotals {
            bytes: is_proved.load(Ordering::Relaxed).then(|| bytes.load(Ordering::Relaxed)),
            refused: refused.load(Ordering::Relaxed),
        }
    }
}

impl Drop for TcpSession {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A connection without a complete proof.
struct Unproved {
    stream: TcpStream,
    until: Time,
    read: [u8; Proofs::LEN],
    len: usize,
}

impl Unproved {
    /// Reads what arrived. Returns whether the connection is the session's; `None` while that is not known.
    fn check(&mut self, now: Time, proofs: &Proofs) -> Option<bool> {
        match self.stream.read(&mut self.read[self.len..]) {
            Ok(0) => return Some(false),
            Ok(len) => self.len += len,
            Err(error) if is_transient(&error) => {}
            Err(_) => return Some(false),
        }
        match self.len {
            Proofs::LEN => Some(proofs.request == self.read && self.stream.write_all(proofs.answer.as_bytes()).is_ok()),
            _ if now >= self.until => Some(false),
            _ => None,
        }
    }
}

/// Waits for the connection of the session, answers its proof and closes the port; `None` if the session ends before.
fn accept(listener: TcpListener, peer: IpAddr, proofs: &Proofs, shared: &Shared) -> Option<TcpStream> {
    let clock = Monotonic::starting_in(TimeDelta::ZERO);
    let mut unproved: Vec<Unproved> = Vec::new();
    while !shared.over.load(Ordering::Relaxed) {
        let now = clock.now();
        let refuse = || shared.refused.fetch_add(1, Ordering::Relaxed);
        for _ in 0..UNPROVED_MAX {
            let Ok((stream, from)) = listener.accept() else { break };
            if from.ip() == peer && unproved.len() < UNPROVED_MAX && stream.set_nonblocking(true).is_ok() {
                unproved.push(Unproved { stream, until: now + PROOF_TIME, read: [0; Proofs::LEN], len: 0 });
            } else {
                refuse();
            }
        }
        let mut index = 0;
        while index < unproved.len() {
            match unproved[index].check(now, proofs) {
                None => index += 1,
                Some(false) => {
                    unproved.swap_remove(index);
                    refuse();
                }
                Some(true) => return Some(unproved.swap_remove(index).stream),
            }
        }
        let mut descriptors = vec![listener.as_fd()];
        descriptors.extend(unproved.iter().map(|unproved| unproved.stream.as_fd()));
        Timing::Sleep.wait(&descriptors, POLL_INTERVAL);
    }
    None
}

/// Reads until the end of the session or of the connection.
fn discard(mut stream: TcpStream, shared: &Shared) {
    shared.is_proved.store(true, Ordering::Relaxed);
    let mut buffer = vec![0; READ];
    while !shared.over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => {
                shared.bytes.fetch_add(len as u64, Ordering::Relaxed);
            }
            Err(error) if is_transient(&error) => Timing::Sleep.wait(&[stream.as_fd()], POLL_INTERVAL),
            Err(_) => return,
        }
    }
}

/// Returns whether to read or write again.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::message::SessionId;
    use crate::hosts::tcp_sender::TcpSender;
    use crate::hosts::token::Token;
    use std::net::Ipv4Addr;

    const ID: SessionId = SessionId([6; 8]);

    fn proofs(token: u8) -> Proofs {
        Proofs::new(None, ID, &Token::from_bytes(&[token; Token::LEN]))
    }

    fn open(receiver: &TcpReceiver, peer: [u8; 4]) -> (TcpSession, SocketAddr) {
        let session = receiver.open((Ipv4Addr::LOCALHOST, 0).into(), peer.into(), proofs(1)).unwrap();
        let at = (Ipv4Addr::LOCALHOST, session.port()).into();
        (session, at)
    }

    /// Waits until the receiver has counted something.
    fn wait_until(is_there: impl Fn() -> bool) {
        while !is_there() {
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Returns what a connection reads that starts with these bytes: nothing if it was closed.
    fn answer(at: SocketAddr, first: &[u8]) -> Vec<u8> {
        let (mut stream, mut answer) = (TcpStream::connect(at).unwrap(), Vec::new());
        // A connection that was closed before may be reset.
        let _ = stream.write_all(first);
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn the_port_serves_one_connection_with_a_proof_and_closes_with_the_session() {
        let receiver = TcpReceiver::start().unwrap();
        let (mut session, at) = open(&receiver, [127, 0, 0, 1]);
        assert_eq!(answer(at, proofs(2).request.as_bytes()), b"", "the proof of another session");
        let idle = TcpStream::connect(at).unwrap();
        let sender = TcpSender::start(at, ID, proofs(1)).unwrap();
        wait_until(|| session.shared.bytes.load(Ordering::Relaxed) > 1_000_000);
        let error = TcpStream::connect(at).expect_err("the port is closed");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let sent = sender.finish();
        let TcpTotals { bytes, refused } = session.finish();
        assert!(bytes.is_some_and(|bytes| bytes > 1_000_000 && bytes <= sent.bytes), "{bytes:?} of {}", sent.bytes);
        assert!(sent.problem.is_none() && sent.congestion.is_some_and(|name| !name.is_empty()));
        assert_eq!(refused, 1);
        drop(idle);
    }

    #[test]
    fn the_proof_alone_is_answered() {
        let receiver = TcpReceiver::start().unwrap();
        let (mut session, at) = open(&receiver, [127, 0, 0, 1]);
        let bytes = [proofs(1).request.as_bytes(), &[7; 200_000][..]].concat();
        let client = thread::spawn(move || answer(at, &bytes));
        wait_until(|| session.shared.bytes.load(Ordering::Relaxed) == 200_000);
        session.finish();
        assert_eq!(client.join().unwrap(), proofs(1).answer.as_bytes());
    }

    #[test]
    fn no_connection_lasts_longer_than_the_session() {
        let receiver = TcpReceiver::start().unwrap();
        for is_proved in [false, true] {
            let (mut session, at) = open(&receiver, [127, 0, 0, 1]);
            let mut stream = TcpStream::connect(at).unwrap();
            let mut read = Vec::new();
            if is_proved {
                stream.write_all(proofs(1).request.as_bytes()).unwrap();
                wait_until(|| session.shared.is_proved.load(Ordering::Relaxed));
            }
            let totals = session.finish();
            assert_eq!(totals, TcpTotals { bytes: is_proved.then_some(0), refused: 0 });
            stream.read_to_end(&mut read).unwrap_or(0);
            assert_eq!(read.len(), if is_proved { Proofs::LEN } else { 0 });
            assert!(TcpStream::connect(at).is_err(), "the port is closed");
        }
    }

    #[test]
    fn other_addresses_and_too_many_connections_are_closed() {
        let receiver = TcpReceiver::start().unwrap();
        let (mut session, at) = open(&receiver, [127, 0, 0, 2]);
        assert_eq!(answer(at, proofs(1).request.as_bytes()), b"");
        assert_eq!(session.finish(), TcpTotals { bytes: None, refused: 1 });
        let (mut session, at) = open(&receiver, [127, 0, 0, 1]);
        let idle: Vec<TcpStream> = (0..UNPROVED_MAX + 3).map(|_| TcpStream::connect(at).unwrap()).collect();
        wait_until(|| session.shared.refused.load(Ordering::Relaxed) >= 3);
        drop(idle);
        // Those that end make room.
        wait_until(|| session.shared.refused.load(Ordering::Relaxed) == UNPROVED_MAX as u64 + 3);
        assert_eq!(answer(at, &proofs(1).request.as_bytes()[..Proofs::LEN - 1]).len(), 0, "a part is no proof");
        let sender = TcpSender::start(at, ID, proofs(1)).unwrap();
        wait_until(|| session.shared.bytes.load(Ordering::Relaxed) > 0);
        assert_eq!(sender.finish().problem, None);
        assert!(session.finish().bytes.is_some());
    }

    #[test]
    fn nothing_is_sent_to_a_port_that_is_not_the_receivers() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sender = TcpSender::start(listener.local_addr().unwrap(), ID, proofs(1)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; Proofs::LEN];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(proofs(2).answer.as_bytes()).unwrap();
        let mut more = Vec::new();
        let _ = stream.read_to_end(&mut more);
        assert_eq!(more, b"");
        let sent = sender.finish();
        assert!(sent.bytes == 0 && sent.problem.is_some_and(|problem| problem.contains("not the receiver")));
    }
}
