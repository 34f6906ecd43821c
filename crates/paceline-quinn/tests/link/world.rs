// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two QUIC endpoints of `quinn-proto` over a simulated path, in virtual time. The client sends; the tests and the examples share this.

use bytes::{Bytes, BytesMut};
use paceline_netsim::link::{Capacity, LinkChange, LossModel, Schedule};
use paceline_netsim::path::{Direction, Path, PathBuilder};
use paceline_quinn::units::{DataSize, Ecn, Fraction, Rate, Time, TimeDelta};
use paceline_quinn::{Encoder, Target};
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    ServerConfig, StreamId, Transmit, TransportConfig,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The size of IP and UDP headers.
const HEADERS: u64 = 28;
/// The time between two frames.
const FRAME: TimeDelta = TimeDelta::from_millis(33);
/// The share of the rate that an encoder makes: the rest is for the headers of packets.
const MEDIA: f64 = 0.9;
/// The highest rate of the encoder.
pub const MAX: Rate = Rate::from_kbps(10_000);
/// The size of a QUIC datagram with media.
const DATAGRAM: usize = 1100;

/// What the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Frames in datagrams, at the rate that the transport allows.
    Encoder,
    /// Frames of an encoder whose rate is at most this.
    Limited(Rate),
    /// One stream with more data than the connection can carry.
    Bulk,
    /// Nothing; the server sends a stream.
    Download,
}

/// What was seen in one second.
#[derive(Clone, Copy, Debug)]
pub struct Second {
    /// The rate of the last frame.
    pub target: Rate,
    /// The rate at which packets left the link.
    pub used: Rate,
    /// The 95th percentile of the queuing delay.
    pub queue: TimeDelta,
    /// Whether the application limited the connection; `false` under a controller of quinn.
    pub limited: bool,
}

/// A call.
pub struct World {
    pub path: Path<(Bytes, Option<EcnCodepoint>)>,
    ends: [End; 2],
    pub source: Source,
    next_frame: Time,
    now: Time,
    base: Instant,
    encoder: Option<Encoder>,
    /// The rate of the last frame.
    rate: Rate,
    pub seconds: Vec<Second>,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    is_connected: bool,
    outgoing: Option<StreamId>,
    incoming: Option<StreamId>,
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 4433)
}

#[allow(clippy::disallowed_methods, reason = "an instant has no other origin; only differences matter")]
pub fn origin() -> Instant {
    Instant::now()
}

fn crypto() -> (rustls::ClientConfig, rustls::ServerConfig) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = certified.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let versions = [&rustls::version::TLS13];
    let client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a server");
    (client, server)
}

impl World {
    /// Connects two endpoints; `factory` makes the controller of the client.
    pub fn new(
        path: PathBuilder,
        source: Source,
        base: Instant,
        factory: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Self {
        let (client, server) = crypto();
        let transport = || {
            let mut transport = TransportConfig::default();
            // The buffer of datagrams holds what an encoder makes in some seconds.
            transport.datagram_send_buffer_size(4 << 20).datagram_receive_buffer_size(Some(4 << 20));
            transport.stream_receive_window((16u32 << 20).into()).receive_window((16u32 << 20).into());
            transport
        };
        let mut sending = transport();
        sending.congestion_controller_factory(factory);
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).expect("a cipher suite")));
        client.transport_config(Arc::new(sending));
        let mut server =
            ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).expect("a cipher suite")));
        server.transport_config(Arc::new(transport()));
        let config = Arc::new(EndpointConfig::default());
        let endpoint = |server, seed: u8| Endpoint::new(config.clone(), server, true, Some([seed; 32]));
        let end = |endpoint, last| End {
            endpoint,
            connection: None,
            address: address(last),
            is_connected: false,
            outgoing: None,
            incoming: None,
        };
        let mut sender = end(endpoint(None, 1), 1);
        let connection = sender.endpoint.connect(base, client, address(2), "localhost").expect("a connection");
        let encoder = Encoder::of(connection.1.congestion_state().clone_box());
        sender.connection = Some(connection);
        Self {
            path: path.build(1),
            ends: [sender, end(endpoint(Some(Arc::new(server)), 2), 2)],
            source,
            next_frame: Time::ZERO,
            now: Time::ZERO,
            base,
            encoder,
            rate: Rate::ZERO,
            seconds: Vec::new(),
        }
    }

    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now.as_nanos() as u64)
    }

    /// Returns the rates of the handle; `None` under a controller of quinn.
    pub fn target(&self) -> Option<Target> {
        self.encoder.as_ref().map(Encoder::target)
    }

    pub fn client(&mut self) -> &mut Connection {
        &mut self.ends[0].connection.as_mut().expect("the client is connected").1
    }

    pub fn change_capacity(&mut self, capacity: Rate) {
        self.path.change(self.now, Direction::Forward, LinkChange::Capacity(Some(Capacity::constant(capacity))));
    }

    /// Sets the share of packets that the forward direction loses.
    pub fn change_loss(&mut self, share: f64) {
        let share = Fraction::new(share).expect("a share");
        let loss = LinkChange::Loss(Schedule::constant(LossModel::Bernoulli(share)));
        self.path.change(self.now, Direction::Forward, loss);
    }

    /// Runs until this time.
    pub fn run(&mut self, until: Time) {
        while self.now < until {
            self.step();
            let of = |end: &mut End| end.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            let [client, server] = &mut self.ends;
            let timers = [of(client), of(server)].into_iter().flatten();
            let base = self.base;
            let timers = timers.map(|at| Time::from_nanos(at.saturating_duration_since(base).as_nanos() as i64));
            let second = Time::from_secs(self.seconds.len() as i64 + 1);
            let next = timers.chain(self.path.poll_timeout()).chain([self.next_frame, second, until]).min();
            self.now = next.unwrap_or(until).max(self.now);
            if self.now >= second {
                self.close_second();
            }
        }
    }

    fn close_second(&mut self) {
        let stats = self.path.stats(Direction::Forward);
        let (from, to) = (self.now - TimeDelta::from_secs(1), self.now);
        self.seconds.push(Second {
            target: self.rate,
            used: stats.rate(from, to),
            queue: stats.queue_delay(from, to, 95),
            limited: self.target().is_some_and(|target| target.application_limited),
        });
    }

    fn step(&mut self) {
        let now = self.instant();
        while let Some(arrived) = self.path.poll(self.now) {
            let place = usize::from(arrived.direction == Direction::Forward);
            let (from, ecn) = (self.ends[1 - place].address, codepoint(arrived.ecn));
            self.receive(now, place, from, ecn, &arrived.packet.0);
        }
        for place in 0..2 {
            if let Some((_, connection)) = &mut self.ends[place].connection {
                connection.handle_timeout(now);
            }
        }
        if self.now >= self.next_frame {
            self.next_frame = self.now + FRAME;
            self.push_frame();
        }
        for place in 0..2 {
            self.ends[place].handle_events();
            if place == 0 && self.source == Source::Bulk || place == 1 && self.source == Source::Download {
                self.ends[place].fill_stream();
            }
            self.transmit(now, place);
        }
    }

    fn push_frame(&mut self) {
        let encoder = match self.source {
            Source::Encoder => MAX,
            Source::Limited(rate) => rate,
            Source::Bulk | Source::Download => Rate::ZERO,
        };
        let allowed = match &self.encoder {
            Some(encoder) => encoder.target().rate,
            // What programs compute from quinn's own controllers.
            None => {
                let connection = self.client();
                let (window, rtt) = (connection.congestion_state().window(), connection.rtt());
                Rate::from_size_and_time(DataSize::from_bytes(window), rtt.into())
            }
        };
        self.rate = allowed;
        if !self.ends[0].is_connected || encoder.is_zero() {
            return;
        }
        let mut bytes = (allowed.min(encoder).scale(MEDIA) * FRAME).as_bytes() as usize;
        let mut datagrams = self.client().datagrams();
        while bytes > 0 {
            let size = bytes.min(DATAGRAM);
            let _ = datagrams.send(Bytes::from(vec![0; size]), true);
            bytes -= size;
        }
    }

    fn receive(&mut self, now: Instant, place: usize, from: SocketAddr, ecn: Option<EcnCodepoint>, data: &[u8]) {
        let end = &mut self.ends[place];
        let mut buffer = Vec::new();
        match end.endpoint.handle(now, from, None, ecn, BytesMut::from(data), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = end.endpoint.accept(incoming, now, &mut buffer, None);
                end.connection = Some(accepted.unwrap_or_else(|error| panic!("{:?}", error.cause)));
            }
            Some(DatagramEvent::Response(transmit)) => self.send(place, &transmit, &buffer),
            None => {}
        }
    }

    fn transmit(&mut self, now: Instant, place: usize) {
        loop {
            let mut buffer = Vec::new();
            let Some((_, connection)) = &mut self.ends[place].connection else { return };
            let Some(transmit) = connection.poll_transmit(now, 10, &mut buffer) else { return };
            self.send(place, &transmit, &buffer);
        }
    }

    fn send(&mut self, place: usize, transmit: &Transmit, buffer: &[u8]) {
        let data = &buffer[..transmit.size];
        let direction = if place == 0 { Direction::Forward } else { Direction::Reverse };
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        for segment in data.chunks(transmit.segment_size.unwrap_or(data.len().max(1))) {
            let size = DataSize::from_bytes(segment.len() as u64 + HEADERS);
            self.path.send(self.now, direction, size, ecn, (Bytes::copy_from_slice(segment), transmit.ecn));
        }
    }
}

impl End {
    /// Passes events between endpoint and connection, and reads what arrived.
    fn handle_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => panic!("the connection was lost: {reason}"),
                _ => {}
            }
        }
        while connection.datagrams().recv().is_some() {}
        if self.incoming.is_none() {
            self.incoming = connection.streams().accept(Dir::Uni);
        }
        if let Some(id) = self.incoming
            && let Ok(mut chunks) = connection.recv_stream(id).read(true)
        {
            while let Ok(Some(_)) = chunks.next(usize::MAX) {}
            let _ = chunks.finalize();
        }
    }

    /// Writes to the stream what its buffer takes.
    fn fill_stream(&mut self) {
        let Some((_, connection)) = self.connection.as_mut().filter(|_| self.is_connected) else { return };
        if self.outgoing.is_none() {
            self.outgoing = connection.streams().open(Dir::Uni);
        }
        if let Some(id) = self.outgoing {
            while connection.send_stream(id).write(&[0; 65_536]).is_ok_and(|written| written > 0) {}
        }
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
