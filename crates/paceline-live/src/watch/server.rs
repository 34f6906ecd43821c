// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP server on loopback: one page and its web sockets. One thread accepts connections, and each connection has its own
//! thread. The server never delays the run: a slow page misses points, and a blocked socket is closed.

use crate::http::{Server, Slot, respond};
use crate::watch::live_series::{LiveObserver, SharedSeries};
use crate::watch::page;
use crate::watch::request::{AccessControl, BUSY, Resource};
use crate::watch::ui_commands::{self, RANGES};
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::network::FlowEnd;
use paceline_netsim::plan::Plan;
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::records::{RunDescription, RunHeader};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tungstenite::handshake::server::create_response;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

/// Largest number of authorised connections.
const MAX_CONNECTIONS: usize = 16;

/// Longest time for pages to show the outcome.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which a page receives new points.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// Shortest interval between two images of an endpoint.
const IMAGE_INTERVAL: Duration = Duration::from_millis(95);

/// Largest message of a page, bytes.
const MAX_MESSAGE: usize = 1024;

/// The run that a page shows and controls.
#[derive(Clone, Debug)]
pub struct WatchedRun {
    pub plan: Plan,
    /// Header of its events.
    pub header: RunHeader,
    /// Description for plots.
    pub description: RunDescription,
    /// Receives the updates of the bottleneck; `None` if the page cannot change the path.
    pub link_control: Option<LinkControl>,
    /// Images of the endpoints.
    pub preview_images: PreviewImages,
}

/// Serves the page until it is dropped.
#[derive(Debug)]
pub struct WatchServer {
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    access: AccessControl,
    series: SharedSeries,
    bottleneck: usize,
    flows: usize,
    hello: String,
    link_control: Option<LinkControl>,
    preview_images: PreviewImages,
    connections: AtomicUsize,
    /// Set when no more connections are accepted.
    closing: AtomicBool,
    /// The outcome of the run once it has ended.
    outcome: Mutex<Option<String>>,
}

/// Returns 32 hexadecimal digits that nobody can guess.
fn random_digits() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl WatchServer {
    /// Serves the page on loopback at this port, or at a free port if it is 0.
    ///
    /// # Errors
    /// The port is in use, or the system has no random bytes.
    pub fn serve(watched: WatchedRun, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let token = random_digits()?;
        let series = SharedSeries::new(&watched.plan, &watched.header);
        let state = Arc::new(State {
            hello: hello(&watched, &series).to_string(),
            access: AccessControl { port, token },
            bottleneck: watched.plan.bottleneck,
            flows: watched.plan.flows.len(),
            series,
            link_control: watched.link_control,
            preview_images: watched.preview_images,
            connections: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            outcome: Mutex::new(None),
        });
        let accepting = {
            let state = state.clone();
            let server = Server::new(listener);
            let accept = move || {
                let shared = state.clone();
                server.run(&state.closing, move |stream, slot, head| connection(stream, slot, head, &shared));
            };
            thread::Builder::new().name("watch".to_owned()).spawn(accept)?
        };
        Ok(Self { state, accepting: Some(accepting) })
    }

    /// Returns the address of the page. It contains the secret token.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.state.access.port, self.state.access.token)
    }

    /// Returns the observer for the events of the run.
    pub fn observer(&self) -> LiveObserver {
        self.state.series.observer()
    }

    /// Shows the outcome of the ended run on all pages and closes their connections.
    pub fn finish(self, outcome: &str) {
        *self.state.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.to_owned());
        let until = Instant::now() + OUTCOME_TIMEOUT;
        while self.state.connections.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for WatchServer {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::Relaxed);
        // A connection wakes the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.state.access.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Returns the first message to a page.
fn hello(watched: &WatchedRun, series: &SharedSeries) -> Value {
    let flow = |index: usize| {
        let (flow, description) = (&watched.plan.flows[index], &watched.description.flows[index]);
        let signals: Vec<Value> = description
            .signals
            .iter()
            .zip(["send", "receive"])
            .flat_map(|(half, name)| {
                half.iter().map(move |s| json!({"half": name, "name": s.name, "unit": s.unit, "states": s.states}))
            })
            .collect();
        json!({"id": flow.id, "kind": flow.kind.name(), "controller": flow.control(), "signals": signals})
    };
    json!({"hello": {
        "scenario": watched.plan.id,
        "title": watched.plan.title,
        "world": watched.header.world,
        "seed": watched.header.seed,
        "duration_s": watched.plan.duration.as_secs_f64(),
        "point_s": crate::watch::live_series::POINT.as_secs_f64(),
        "hop": watched.plan.hops[watched.plan.bottleneck].id,
        "controls": watched.link_control.is_some(),
        "ranges": RANGES,
        "standing": series.initial_link_state(),
        "flows": (0..watched.plan.flows.len()).map(flow).collect::<Vec<_>>(),
    }})
}

/// Counts an authorised connection until it is dropped.
struct ConnectionCount(Arc<State>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn connection(mut stream: &TcpStream, slot: Slot, head: &[u8], state: &Arc<State>) -> io::Result<()> {
    let resource = match state.access.authorize(head) {
        Err(error) => return error.send(stream),
        Ok(resource) => resource,
    };
    let before = state.connections.fetch_add(1, Ordering::Relaxed);
    let _authorised = ConnectionCount(state.clone());
    // Pages have a limit of their own.
    drop(slot);
    match resource {
        _ if before >= MAX_CONNECTIONS => BUSY.send(stream),
        Resource::Page => {
            let nonce = random_digits()?;
            let policy = format!("Content-Security-Policy: {}\r\n", page::policy(state.access.port, &nonce));
            respond(stream, "200 OK", "text/html; charset=utf-8", &policy, &page::html(&nonce))
        }
        Resource::Socket(request) => {
            let Ok(response) = create_response(&request) else {
                return respond(stream, "400 Bad Request", "text/plain", "", "invalid web socket handshake\n");
            };
            let mut head = String::from("HTTP/1.1 101 Switching Protocols\r\n");
            for (name, value) in response.headers() {
                head += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            stream.set_read_timeout(Some(POLL_INTERVAL))?;
            let config =
                WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
            let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
            let _ = serve(&mut socket, state);
            let _ = socket.close(None);
            let _ = socket.flush();
            Ok(())
        }
    }
}

/// Sends new points and images to a page and executes its commands until the run ends or the page closes.
fn serve(socket: &mut WebSocket<&TcpStream>, state: &State) -> tungstenite::Result<()> {
    socket.send(Message::text(state.hello.as_str()))?;
    let mut next = 0;
    // Number and send time of the last image of each endpoint.
    let mut sent = vec![[(0, None::<Instant>); 2]; state.flows];
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => match (ui_commands::parse(&text), &state.link_control) {
                (Ok(update), Some(link_control)) => link_control.request(state.bottleneck, update),
                (Ok(_), None) => socket.send(Message::text(json!({"refused": "the path is real"}).to_string()))?,
                (Err(reason), _) => socket.send(Message::text(json!({"refused": reason}).to_string()))?,
            },
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        // Read before the points, so that no point follows the outcome.
        let outcome = state.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (points, after) = state.series.lock().since(next);
        next = after;
        if !points.is_empty() {
            socket.send(Message::text(format!("{{\"points\":[{}]}}", points.join(","))))?;
        }
        for (flow, sent) in sent.iter_mut().enumerate() {
            for (end, sent) in [FlowEnd::Sender, FlowEnd::Receiver].into_iter().zip(sent) {
                if sent.1.is_some_and(|last| last.elapsed() < IMAGE_INTERVAL) {
                    continue;
                }
                if let Some((number, jpeg)) = state.preview_images.since(flow, end, sent.0) {
                    *sent = (number, Some(Instant::now()));
                    let picture: Vec<u8> = [flow as u8, end as u8].into_iter().chain(jpeg.iter().copied()).collect();
                    socket.send(Message::binary(picture))?;
                }
            }
        }
        if let Some(outcome) = outcome {
            return socket.send(Message::text(json!({"over": outcome}).to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::watch::live_series::tests::call;
    use paceline::Registry;
    use paceline_netsim::records::LinkUpdate;
    use paceline_units::Rate;
    use std::io::Read;
    use std::net::SocketAddr;

    fn watch() -> (WatchServer, LinkControl, PreviewImages) {
        let (plan, header) = call();
        let description = plan.describe(&Registry::standard());
        let (link_control, preview_images) = (LinkControl::default(), PreviewImages::default());
        let watched = WatchedRun {
            plan,
            header,
            description,
            link_control: Some(link_control.clone()),
            preview_images: preview_images.clone(),
        };
        (WatchServer::serve(watched, 0).unwrap(), link_control, preview_images)
    }

    fn connect(watch: &WatchServer) -> TcpStream {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, watch.state.access.port));
        TcpStream::connect(address).unwrap()
    }

    fn get(watch: &WatchServer, path: &str, host: &str) -> String {
        let mut stream = connect(watch);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn socket(watch: &WatchServer, origin: &str) -> tungstenite::Result<WebSocket<TcpStream>> {
        let (port, token) = (watch.state.access.port, &watch.state.access.token);
        let uri: tungstenite::http::Uri = format!("ws://127.0.0.1:{port}/{token}/socket").parse().unwrap();
        let request = tungstenite::ClientRequestBuilder::new(uri).with_header("Origin", origin);
        match tungstenite::client(request, connect(watch)) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(error)) => Err(error),
            Err(tungstenite::HandshakeError::Interrupted(_)) => unreachable!("the stream blocks"),
        }
    }

    fn receive(socket: &mut WebSocket<TcpStream>) -> Value {
        serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
    }

    #[test]
    fn serves_the_page_only_with_token_and_host() {
        let (watch, _, _) = watch();
        let (port, token) = (watch.state.access.port, watch.state.access.token.clone());
        assert_eq!(watch.url(), format!("http://127.0.0.1:{port}/{token}/"));
        assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
        let host = format!("127.0.0.1:{port}");
        let page = get(&watch, &format!("/{token}/"), &host);
        assert!(
            page.starts_with("HTTP/1.1 200 ") && page.contains("default-src 'none'") && page.ends_with("</html>\n")
        );
        assert!(get(&watch, &format!("/{token}/"), "rebound.example").starts_with("HTTP/1.1 403 "));
        assert!(get(&watch, "/0123456789abcdef0123456789abcdef/", &host).starts_with("HTTP/1.1 403 "));
        assert!(get(&watch, "/", &host).starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn socket_accepts_commands_within_range_from_its_own_origin() {
        let (watch, link_control, preview_images) = watch();
        let refused = socket(&watch, "http://evil.example").unwrap_err();
        assert!(matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == 403), "{refused}");
        let mut page = socket(&watch, &format!("http://127.0.0.1:{}", watch.state.access.port)).unwrap();
        let hello = receive(&mut page);
        assert_eq!((&hello["hello"]["standing"]["capacity"], &hello["hello"]["controls"]), (&json!(1e6), &json!(true)));
        assert_eq!(hello["hello"]["flows"][0]["controller"], json!("gcc-2016"));
        page.send(Message::text(r#"{"capacity_bps":1}"#)).unwrap();
        let answer = receive(&mut page);
        assert!(answer["refused"].as_str().unwrap().contains("not between"), "{answer}");
        assert_eq!(link_control.take_requests(), []);
        page.send(Message::text(r#"{"capacity_bps":500000}"#)).unwrap();
        // Wait for the update.
        let updates = (0..1000).find_map(|_| {
            thread::sleep(POLL_INTERVAL);
            Some(link_control.take_requests()).filter(|updates| !updates.is_empty())
        });
        assert_eq!(updates, Some(vec![(0, LinkUpdate::Capacity(Rate::from_kbps(500)))]));
        preview_images.put(0, FlowEnd::Receiver, vec![7, 8, 9]);
        let picture = page.read().unwrap();
        assert_eq!(picture, Message::binary(vec![0, 1, 7, 8, 9]));
        watch.finish("done");
        assert_eq!(receive(&mut page), json!({"over": "done"}));
    }

    #[test]
    fn a_real_path_has_no_controls() {
        let (plan, header) = call();
        let description = plan.describe(&Registry::standard());
        let preview_images = PreviewImages::default();
        let watched = WatchedRun { plan, header, description, link_control: None, preview_images };
        let watch = WatchServer::serve(watched, 0).unwrap();
        let mut page = socket(&watch, &format!("http://127.0.0.1:{}", watch.state.access.port)).unwrap();
        assert_eq!(receive(&mut page)["hello"]["controls"], json!(false));
        page.send(Message::text(r#"{"capacity_bps":500000}"#)).unwrap();
        assert_eq!(receive(&mut page), json!({"refused": "the path is real"}));
    }

    #[test]
    fn silent_connections_do_not_block_pages() {
        let (watch, _, _) = watch();
        let silent: Vec<TcpStream> = (0..MAX_CONNECTIONS + 4).map(|_| connect(&watch)).collect();
        let (port, token) = (watch.state.access.port, &watch.state.access.token);
        let page = get(&watch, &format!("/{token}/"), &format!("127.0.0.1:{port}"));
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        drop(silent);
    }

    #[test]
    fn limits_message_size_and_connections() {
        let (watch, link_control, _) = watch();
        let origin = format!("http://127.0.0.1:{}", watch.state.access.port);
        let mut page = socket(&watch, &origin).unwrap();
        receive(&mut page);
        page.send(Message::text(format!("{:2000}", "\"scenario\""))).unwrap();
        assert!(matches!(page.read(), Ok(Message::Close(_)) | Err(_)));
        assert_eq!(link_control.take_requests(), []);
        let open: Vec<_> = (0..MAX_CONNECTIONS).map(|_| socket(&watch, &origin)).collect();
        let served = open.iter().filter(|socket| socket.is_ok()).count();
        assert!(
            (MAX_CONNECTIONS - 1..=MAX_CONNECTIONS).contains(&served),
            "{served}: the first connection may still be open"
        );
        let refused = (0..2).map(|_| socket(&watch, &origin)).filter(Result::is_err).count();
        assert!(refused >= 1, "no more than {MAX_CONNECTIONS}");
        drop(open);
    }
}
