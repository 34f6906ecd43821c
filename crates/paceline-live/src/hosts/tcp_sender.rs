// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end of the TCP flow beside the media: a thread that writes as fast as the kernel's TCP lets it.

use crate::hosts::message::SessionId;
use crate::hosts::seal::Proofs;
use crate::hosts::tcp_receiver::is_transient;
use serde::Serialize;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time for the connection, and for the answer of the receiver: two retransmissions of a segment (RFC 6298: 1 s, 2 s).
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// Longest wait of a write, so that the end of the session is noticed.
const WRITE_TIME: Duration = Duration::from_millis(20);

/// Size of one write, bytes.
const WRITE: usize = 1 << 16;

/// What a sender knows of its TCP flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TcpSent {
    /// The congestion control of the kernel; `None` if there was no connection.
    pub congestion: Option<String>,
    /// Bytes that the kernel accepted, without the proof. Some of them wait at the end of the session.
    #[serde(rename = "sent_bytes")]
    pub bytes: u64,
    /// Why there was no connection, or why it ended before the session.
    pub problem: Option<String>,
}

/// The thread.
pub(crate) struct TcpSender {
    over: Arc<AtomicBool>,
    thread: JoinHandle<TcpSent>,
}

impl TcpSender {
    /// Connects to the receiver and sends until [`finish`](Self::finish), in a thread with the priority of the calling one.
    pub(crate) fn start(to: SocketAddr, id: SessionId, proofs: Proofs) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let work = move || {
            let mut sent = TcpSent::default();
            let result = send(to, id, &proofs, &is_over, &mut sent);
            sent.problem = result.err().map(|error| error.to_string());
            sent
        };
        Ok(Self { over, thread: thread::Builder::new().name("tcp".to_owned()).spawn(work)? })
    }

    /// Closes the connection at once, so that nothing is sent after the session.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Stops, waits for the end of a connection attempt, and returns what was sent.
    pub(crate) fn finish(self) -> TcpSent {
        self.stop();
        self.thread.join().unwrap_or_default()
    }
}

fn send(to: SocketAddr, id: SessionId, proofs: &Proofs, over: &AtomicBool, sent: &mut TcpSent) -> io::Result<()> {
    let connecting = TcpStream::connect_timeout(&to, CONNECT_TIME);
    let mut stream = connecting.map_err(|error| io::Error::other(format!("cannot connect to TCP {to}: {error}")))?;
    // The following close is a reset: the kernel sends nothing of what waits.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    stream.set_read_timeout(Some(CONNECT_TIME))?;
    stream.write_all(proofs.request.as_bytes())?;
    let mut answer = [0; Proofs::LEN];
    let answered = stream.read_exact(&mut answer);
    if answered.is_err() || proofs.answer != answer {
        return Err(io::Error::other(format!("what listens at TCP {to} is not the receiver of this session")));
    }
    let congestion = SockRef::from(&stream).tcp_congestion()?;
    sent.congestion = Some(String::from_utf8_lossy(&congestion).trim_end_matches('\0').to_owned());
    stream.set_write_timeout(Some(WRITE_TIME))?;
    // Bytes that no device on the path can compress.
    let mut bytes = vec![0; WRITE];
    blake3::Hasher::new_derive_key("paceline 2026 hosts tcp data").update(&id.0).finalize_xof().fill(&mut bytes);
    while !over.load(Ordering::Relaxed) {
        match stream.write(&bytes) {
            Ok(len) => sent.bytes += len as u64,
            // The receiver may close the connection before this thread sees the end.
            Err(_) if over.load(Ordering::Relaxed) => {}
            Err(error) if is_transient(&error) => {}
            Err(error) => {
                return Err(io::Error::other(format!("the TCP connection ended before the session: {error}")));
            }
        }
    }
    Ok(())
}
