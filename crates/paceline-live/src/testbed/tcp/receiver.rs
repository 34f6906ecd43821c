// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving program: accepts one connection after the other and reads its data.

use super::TcpProgram;
use super::options::clamp_window;
use crate::testbed::timing::{Role, enter_realtime};
use nix::poll::{PollFd, PollFlags};
use paceline_netsim::flow::tcp::TcpConfig;
use paceline_netsim::records::EventRecord;
use paceline_units::{DataSize, Time};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Maximum number of connections that wait for acceptance.
const BACKLOG: i32 = 16;

/// Maximum size of one read, bytes.
const READ_MAX: usize = 1 << 18;

/// Creates a listener for a flow at an address of the calling thread's namespace, before the flow starts. Port 0 selects a
/// free port.
///
/// # Errors
/// The address does not exist, or the port is in use.
pub fn listen(at: SocketAddrV4, config: &TcpConfig) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    limit_window(&socket, config)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Reads the data of connections from address `from` until the flow's stop. A new connection ends the previous one, as in the
/// simulator. Connections from other addresses are reset.
pub fn receive(program: &TcpProgram<'_>, listener: &TcpListener, from: Ipv4Addr) -> io::Result<()> {
    enter_realtime(Role::Endpoint);
    let mut open: Option<TcpStream> = None;
    let mut buffer = vec![0; READ_MAX];
    loop {
        let mut descriptors = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        descriptors.extend(open.iter().map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)));
        if !program.ready(&mut descriptors, Time::MAX)? {
            break;
        }
        let has_connection = descriptors[0].any() == Some(true);
        // Read the data of the old connection first. Dropping a stream at its end closes our side.
        open = open.filter(|stream| read(program, stream, &mut buffer));
        if has_connection && let Some(stream) = accept(listener, from)? {
            open.replace(stream).as_ref().map_or(Ok(()), reset_on_close)?;
        }
    }
    open.as_ref().map_or(Ok(()), reset_on_close)
}

/// Reads once. Returns false at the end of the connection.
fn read(program: &TcpProgram<'_>, mut stream: &TcpStream, buffer: &mut [u8]) -> bool {
    match stream.read(buffer) {
        Ok(0) => false,
        Ok(len) => {
            // Since Linux 6.9 the kernel resets the limit when it learns the segment size.
            let _ = limit_window(stream, &program.tcp.config);
            let size = DataSize::from_bytes(len as u64);
            program.emit(EventRecord::Read { at: program.clock.now(), flow: program.flow, size });
            true
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// Limits the advertised window of a connection, or of the connections of a listener.
fn limit_window(socket: &impl AsFd, config: &TcpConfig) -> io::Result<()> {
    config
        .receive_window
        .map_or(Ok(()), |window| clamp_window(socket, i32::try_from(window.as_bytes()).unwrap_or(i32::MAX)))
}

/// Accepts the waiting connection; `None` if it is from another address or no longer exists.
fn accept(listener: &TcpListener, from: Ipv4Addr) -> io::Result<Option<TcpStream>> {
    let (stream, peer) = match listener.accept() {
        Ok(accepted) => accepted,
        Err(error) => {
            use ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
            let is_transient = matches!(error.kind(), ConnectionAborted | WouldBlock | Interrupted);
            return if is_transient { Ok(None) } else { Err(error) };
        }
    };
    stream.set_nonblocking(true)?;
    if peer.ip() != IpAddr::V4(from) {
        reset_on_close(&stream)?;
        return Ok(None);
    }
    Ok(Some(stream))
}

/// Makes the following close a reset, without retransmissions.
fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
