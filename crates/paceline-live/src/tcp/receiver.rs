//! The reading end: takes one connection after the other, and what comes on it.

use super::Program;
use super::options::clamp_window;
use crate::wait::{Rank, be_punctual};
use nix::poll::{PollFd, PollFlags};
use paceline_flow::tcp::TcpConfig;
use paceline_lab::rows::Row;
use paceline_units::{DataSize, Time};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 16;

/// Most bytes that one read takes.
const READ_MAX: usize = 1 << 18;

/// A listener for a flow of this kind, at an address of the calling thread's namespace; port 0: any. To be there before
/// the flow begins.
///
/// # Errors
/// The address is not there, or the port is taken.
pub fn listen(at: SocketAddrV4, config: &TcpConfig) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    limit_window(&socket, config)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Reads what connections from the address `from` bring, until the flow's stop. A connection ends the one before it, as in
/// the simulator, and nobody else gets one.
///
/// # Errors
/// The listener breaks.
pub fn receive(program: &Program<'_>, listener: &TcpListener, from: Ipv4Addr) -> io::Result<()> {
    be_punctual(Rank::End);
    let mut open: Option<TcpStream> = None;
    let mut buffer = vec![0; READ_MAX];
    loop {
        let mut descriptors = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        descriptors.extend(open.iter().map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)));
        if !program.ready(&mut descriptors, Time::MAX)? {
            break;
        }
        let came = descriptors[0].any() == Some(true);
        // What the old one brought comes first. Its end is answered with ours; whether that is the end of the data or the
        // sender gave it up is the sender's affair.
        open = open.filter(|stream| read(program, stream, &mut buffer));
        if came && let Some(stream) = accept(listener, from)? {
            open.replace(stream).as_ref().map_or(Ok(()), give_up)?;
        }
    }
    open.as_ref().map_or(Ok(()), give_up)
}

/// Reads once; false: nothing more will come.
fn read(program: &Program<'_>, mut stream: &TcpStream, buffer: &mut [u8]) -> bool {
    match stream.read(buffer) {
        Ok(0) => false,
        Ok(len) => {
            // The kernel (since 6.9) sets the limit anew when it learns how large segments are.
            let _ = limit_window(stream, &program.tcp.config);
            let size = DataSize::from_bytes(len as u64);
            program.tell(Row::Read { at: program.clock.now(), flow: program.flow, size });
            true
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// Sets the most that a connection, or those of a listener, may offer.
fn limit_window(socket: &impl AsFd, config: &TcpConfig) -> io::Result<()> {
    config
        .receive_window
        .map_or(Ok(()), |window| clamp_window(socket, i32::try_from(window.as_bytes()).unwrap_or(i32::MAX)))
}

/// The connection that waits, unless it is a stranger's or is gone already.
fn accept(listener: &TcpListener, from: Ipv4Addr) -> io::Result<Option<TcpStream>> {
    let (stream, peer) = match listener.accept() {
        Ok(accepted) => accepted,
        // The connection is gone before it was taken.
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
        Err(error) => return Err(error),
    };
    stream.set_nonblocking(true)?;
    if peer.ip() != IpAddr::V4(from) {
        give_up(&stream)?;
        return Ok(None);
    }
    Ok(Some(stream))
}

/// Makes the close that follows a reset: nothing is sent again, and nothing waits.
fn give_up(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}
