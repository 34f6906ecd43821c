//! The server: one page and its web sockets, on loopback. A thread accepts, each connection has one of its own, and nothing
//! here ever holds the run up: of a board, a slow page misses points; a socket that takes nothing is closed.

use crate::asked::{self, RANGES};
use crate::board::{Shared, Sink};
use crate::page;
use crate::request::{BUSY, Door, Refusal, Wanted, read_head};
use paceline_lab::moves::Moves;
use paceline_lab::network::End;
use paceline_lab::pictures::Pictures;
use paceline_lab::plan::Plan;
use paceline_lab::rows::RunHeader;
use paceline_lab::store::Setting;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tungstenite::handshake::server::create_response;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

/// Connections at once that know the token.
const MOST: usize = 16;

/// Connections at once whose request is still read: whoever does not know the token takes no page's place.
const UNREAD: usize = 64;

/// A request comes in this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that takes nothing for this long is closed.
const SLOWEST: Duration = Duration::from_secs(3);

/// How often a page is told what is new.
const TURN: Duration = Duration::from_millis(40);

/// How often it is shown another picture of an end.
const PICTURE: Duration = Duration::from_millis(95);

/// What a page may say at once.
const LONGEST: usize = 1024;

/// What there is to look at, and what to move.
#[derive(Clone, Debug)]
pub struct Look {
    /// What runs. The hop that is moved is its bottleneck.
    pub plan: Plan,
    /// What its rows are about.
    pub header: RunHeader,
    /// The same for plots.
    pub setting: Setting,
    /// Where moves are asked for.
    pub moves: Moves,
    /// What the ends look like.
    pub pictures: Pictures,
}

/// A page that is served until this goes.
#[derive(Debug)]
pub struct Watch {
    served: Arc<Served>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Served {
    door: Door,
    board: Shared,
    bottleneck: usize,
    flows: usize,
    hello: String,
    moves: Moves,
    pictures: Pictures,
    connections: AtomicUsize,
    unread: AtomicUsize,
    /// No more is accepted.
    closing: AtomicBool,
    /// What the run came to, once it is over.
    over: Mutex<Option<String>>,
}

impl Watch {
    /// Serves the page on loopback, at this port; at any free one if it is 0.
    ///
    /// # Errors
    /// The port is taken, or the system gives no random bytes.
    pub fn serve(look: Look, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|error| io::Error::other(error.to_string()))?;
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let board = Shared::new(&look.plan, &look.header);
        let served = Arc::new(Served {
            hello: hello(&look, &board).to_string(),
            door: Door { port, token },
            bottleneck: look.plan.bottleneck,
            flows: look.plan.flows.len(),
            board,
            moves: look.moves,
            pictures: look.pictures,
            connections: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            over: Mutex::new(None),
        });
        let accepting = {
            let served = served.clone();
            thread::Builder::new().name("watch".to_owned()).spawn(move || accept(&listener, &served))?
        };
        Ok(Self { served, accepting: Some(accepting) })
    }

    /// Where the page is. Whoever knows it may move the link.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.served.door.port, self.served.door.token)
    }

    /// Where the rows of the run go.
    pub fn sink(&self) -> Sink {
        self.served.board.sink()
    }

    /// The run is over, and came to this: pages say so, and are let go.
    pub fn over(self, came_to: &str) {
        *self.served.over.lock().unwrap_or_else(PoisonError::into_inner) = Some(came_to.to_owned());
        let until = Instant::now() + PATIENCE;
        while self.served.connections.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(TURN);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.served.closing.store(true, Ordering::Relaxed);
        // Whoever accepts wakes up by it.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.served.door.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// What a page is told first.
fn hello(look: &Look, board: &Shared) -> Value {
    let flow = |index: usize| {
        let (flow, setting) = (&look.plan.flows[index], &look.setting.flows[index]);
        let signals: Vec<Value> = setting
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
        "scenario": look.plan.id,
        "title": look.plan.title,
        "world": look.header.world,
        "seed": look.header.seed,
        "duration_s": look.plan.duration.as_secs_f64(),
        "point_s": crate::board::POINT.as_secs_f64(),
        "hop": look.plan.hops[look.plan.bottleneck].id,
        "ranges": RANGES,
        "standing": board.standing(),
        "flows": (0..look.plan.flows.len()).map(flow).collect::<Vec<_>>(),
    }})
}

fn accept(listener: &TcpListener, served: &Arc<Served>) {
    for stream in listener.incoming() {
        if served.closing.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let unread = Counted::new(served.clone(), |served| &served.unread);
        if unread.number >= UNREAD {
            continue;
        }
        let answer = move || {
            // What one page does wrong is its own affair.
            let _ = connection(stream, unread);
        };
        // Without a thread to be had the connection is closed.
        let _ = thread::Builder::new().name("watch page".to_owned()).spawn(answer);
    }
}

/// A connection, counted while it is there.
struct Counted {
    served: Arc<Served>,
    of: fn(&Served) -> &AtomicUsize,
    /// How many there were before it.
    number: usize,
}

impl Counted {
    fn new(served: Arc<Served>, of: fn(&Served) -> &AtomicUsize) -> Self {
        let number = of(&served).fetch_add(1, Ordering::Relaxed);
        Self { served, of, number }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.of)(&self.served).fetch_sub(1, Ordering::Relaxed);
    }
}

fn connection(mut stream: TcpStream, unread: Counted) -> io::Result<()> {
    let served = unread.served.clone();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(SLOWEST))?;
    stream.set_nodelay(true)?;
    let until = Instant::now() + PATIENCE;
    let head = read_head(&mut stream, || Instant::now() < until)?;
    let wanted = match served.door.judge(&head) {
        Err(refusal) => return refuse(&mut stream, refusal),
        Ok(wanted) => wanted,
    };
    let place = Counted::new(served.clone(), |served| &served.connections);
    drop(unread);
    match wanted {
        _ if place.number >= MOST => refuse(&mut stream, BUSY),
        Wanted::Page => {
            let more = format!("Content-Security-Policy: {}\r\n", page::policy(served.door.port));
            answer(&mut stream, "200 OK", "text/html", &more, &page::html())
        }
        Wanted::Socket(request) => {
            let Ok(response) = create_response(&request) else {
                return answer(&mut stream, "400 Bad Request", "text/plain", "", "this is no web socket\n");
            };
            let mut head = String::from("HTTP/1.1 101 Switching Protocols\r\n");
            for (name, value) in response.headers() {
                head += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            stream.set_read_timeout(Some(TURN))?;
            let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
            let mut socket = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
            let _ = serve(&mut socket, &served);
            let _ = socket.close(None);
            let _ = socket.flush();
            Ok(())
        }
    }
}

fn refuse(stream: &mut TcpStream, refusal: Refusal) -> io::Result<()> {
    answer(stream, &format!("{} {}", refusal.status, refusal.reason), "text/plain", "", refusal.why)
}

fn answer(stream: &mut TcpStream, status: &str, kind: &str, more: &str, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n{more}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// Tells a page what is new and does what it asks, until the run is over or the page is gone.
fn serve(socket: &mut WebSocket<TcpStream>, served: &Served) -> tungstenite::Result<()> {
    socket.send(Message::text(served.hello.as_str()))?;
    let mut next = 0;
    let mut seen = vec![[(0, None::<Instant>); 2]; served.flows];
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => match asked::read(&text) {
                Ok(to) => served.moves.ask(served.bottleneck, to),
                Err(why) => socket.send(Message::text(json!({"refused": why}).to_string()))?,
            },
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        // Looked at before the points: what comes after the last of them is nothing.
        let over = served.over.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (points, after) = served.board.lock().since(next);
        next = after;
        if !points.is_empty() {
            socket.send(Message::text(format!("{{\"points\":[{}]}}", points.join(","))))?;
        }
        for (flow, seen) in seen.iter_mut().enumerate() {
            for (end, seen) in [End::Sender, End::Receiver].into_iter().zip(seen) {
                if seen.1.is_some_and(|last| last.elapsed() < PICTURE) {
                    continue;
                }
                if let Some((number, jpeg)) = served.pictures.since(flow, end, seen.0) {
                    *seen = (number, Some(Instant::now()));
                    let picture: Vec<u8> = [flow as u8, end as u8].into_iter().chain(jpeg.iter().copied()).collect();
                    socket.send(Message::binary(picture))?;
                }
            }
        }
        if let Some(came_to) = over {
            return socket.send(Message::text(json!({"over": came_to}).to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::tests::call;
    use paceline::Registry;
    use paceline_lab::moves::Move;
    use paceline_units::Rate;
    use std::io::Read;
    use std::net::SocketAddr;

    fn watch() -> (Watch, Moves, Pictures) {
        let (plan, header) = call();
        let setting = Setting::of(&plan, &Registry::standard());
        let (moves, pictures) = (Moves::default(), Pictures::default());
        let look = Look { plan, header, setting, moves: moves.clone(), pictures: pictures.clone() };
        (Watch::serve(look, 0).unwrap(), moves, pictures)
    }

    fn connect(watch: &Watch) -> TcpStream {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, watch.served.door.port));
        TcpStream::connect(address).unwrap()
    }

    fn get(watch: &Watch, path: &str, host: &str) -> String {
        let mut stream = connect(watch);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn socket(watch: &Watch, origin: &str) -> tungstenite::Result<WebSocket<TcpStream>> {
        let (port, token) = (watch.served.door.port, &watch.served.door.token);
        let uri: tungstenite::http::Uri = format!("ws://127.0.0.1:{port}/{token}/socket").parse().unwrap();
        let request = tungstenite::ClientRequestBuilder::new(uri).with_header("Origin", origin);
        match tungstenite::client(request, connect(watch)) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(error)) => Err(error),
            Err(tungstenite::HandshakeError::Interrupted(_)) => unreachable!("the stream blocks"),
        }
    }

    fn told(socket: &mut WebSocket<TcpStream>) -> Value {
        serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
    }

    #[test]
    fn the_page_is_for_who_has_its_address() {
        let (watch, _, _) = watch();
        let (port, token) = (watch.served.door.port, watch.served.door.token.clone());
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
    fn a_socket_moves_the_link_within_bounds_and_a_foreign_page_does_not() {
        let (watch, moves, pictures) = watch();
        let refused = socket(&watch, "http://evil.example").unwrap_err();
        assert!(matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == 403), "{refused}");
        let mut page = socket(&watch, &format!("http://127.0.0.1:{}", watch.served.door.port)).unwrap();
        let hello = told(&mut page);
        assert_eq!(hello["hello"]["standing"]["capacity"], json!(1e6));
        assert_eq!(hello["hello"]["flows"][0]["controller"], json!("gcc-2016"));
        page.send(Message::text(r#"{"capacity_bps":1}"#)).unwrap();
        let answer = told(&mut page);
        assert!(answer["refused"].as_str().unwrap().contains("not within"), "{answer}");
        assert_eq!(moves.take(), []);
        page.send(Message::text(r#"{"capacity_bps":500000}"#)).unwrap();
        // A picture may overtake it.
        let asked = (0..1000).find_map(|_| {
            thread::sleep(TURN);
            Some(moves.take()).filter(|asked| !asked.is_empty())
        });
        assert_eq!(asked, Some(vec![(0, Move::Capacity(Rate::from_kbps(500)))]));
        pictures.put(0, End::Receiver, vec![7, 8, 9]);
        let picture = page.read().unwrap();
        assert_eq!(picture, Message::binary(vec![0, 1, 7, 8, 9]));
        watch.over("done");
        assert_eq!(told(&mut page), json!({"over": "done"}));
    }

    #[test]
    fn who_says_nothing_takes_no_page_s_place() {
        let (watch, _, _) = watch();
        let silent: Vec<TcpStream> = (0..MOST + 4).map(|_| connect(&watch)).collect();
        let (port, token) = (watch.served.door.port, &watch.served.door.token);
        let page = get(&watch, &format!("/{token}/"), &format!("127.0.0.1:{port}"));
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        drop(silent);
    }

    #[test]
    fn what_is_too_long_or_too_much_ends_the_connection_and_nothing_else() {
        let (watch, moves, _) = watch();
        let origin = format!("http://127.0.0.1:{}", watch.served.door.port);
        let mut page = socket(&watch, &origin).unwrap();
        told(&mut page);
        page.send(Message::text(format!("{:2000}", "\"scenario\""))).unwrap();
        assert!(matches!(page.read(), Ok(Message::Close(_)) | Err(_)));
        assert_eq!(moves.take(), []);
        let open: Vec<_> = (0..MOST).map(|_| socket(&watch, &origin)).collect();
        let served = open.iter().filter(|socket| socket.is_ok()).count();
        assert!((MOST - 1..=MOST).contains(&served), "{served}: the first may not be gone yet");
        let refused = (0..2).map(|_| socket(&watch, &origin)).filter(Result::is_err).count();
        assert!(refused >= 1, "no more than {MOST}");
        drop(open);
    }
}
