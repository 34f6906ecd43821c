//! The DevTools protocol over two pipes: JSON, each message ended by a zero byte.
//!
//! One thread writes and one reads, so neither waits for the other however long a message is. When Chromium goes, its end of
//! the pipe closes, and whoever waits for an answer gets an error.

use crate::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an answer may take. Pages wait for things on their own clock, so this is long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What hears the events of a page: method and parameters.
pub type Listener = Box<dyn FnMut(&str, &Value) + Send>;

/// A connection to one browser. Clones are the same connection.
#[derive(Clone)]
pub struct Pipe {
    out: Sender<Vec<u8>>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    last: u64,
    gone: bool,
    waiting: BTreeMap<u64, Sender<Value>>,
    listeners: BTreeMap<String, Listener>,
}

impl Pipe {
    /// Speaks over these ends of the pipes.
    pub fn new(mut to: impl Write + Send + 'static, from: impl Read + Send + 'static) -> Self {
        let (out, messages) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            while let Ok(message) = messages.recv() {
                // What cannot be written has no answer: the reader notices.
                if to.write_all(&message).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
        });
        let shared = Arc::new(Mutex::new(Shared::default()));
        let hearing = Arc::clone(&shared);
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut bytes = Vec::new();
            while from.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
                let message = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
                if let Ok(message) = message {
                    hear(&hearing, message);
                }
                bytes.clear();
            }
            let mut shared = locked(&hearing);
            shared.gone = true;
            shared.waiting.clear();
            shared.listeners.clear();
        });
        Self { out, shared }
    }

    /// Asks for something and waits for the answer; `session`: of which page, or empty of the browser.
    pub fn call(&self, session: &str, method: &str, parameters: Value) -> Result<Value, Error> {
        let answer = self.send(session, method, parameters)?;
        let answer = answer.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::Late(method.to_owned()),
            RecvTimeoutError::Disconnected => Error::Gone,
        })?;
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => {
                let cause = error["message"].as_str().unwrap_or("it does not say why").to_owned();
                Err(Error::Refused { method: method.to_owned(), cause })
            }
        }
    }

    /// Asks for something and goes on; where the answer will come.
    pub fn send(&self, session: &str, method: &str, parameters: Value) -> Result<Receiver<Value>, Error> {
        let (to, answer) = mpsc::channel();
        let id = {
            let mut shared = locked(&self.shared);
            if shared.gone {
                return Err(Error::Gone);
            }
            shared.last += 1;
            let id = shared.last;
            shared.waiting.insert(id, to);
            id
        };
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !session.is_empty() {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.out.send(bytes).map_err(|_| Error::Gone)?;
        Ok(answer)
    }

    /// Lets somebody hear the events of a page, in place of who heard them before. It is called on the thread that reads:
    /// it may [`send`](Self::send), but not wait for an answer.
    pub fn listen(&self, session: &str, listener: Listener) {
        locked(&self.shared).listeners.insert(session.to_owned(), listener);
    }

    /// Nobody hears the events of this page any more.
    pub fn leave(&self, session: &str) {
        let left = locked(&self.shared).listeners.remove(session);
        drop(left);
    }
}

/// A message came: an answer or an event.
fn hear(shared: &Mutex<Shared>, mut message: Value) {
    if let Some(id) = message["id"].as_u64() {
        let waiting = locked(shared).waiting.remove(&id);
        // Whoever asked may have given up.
        let _ = waiting.map(|to| to.send(message));
        return;
    }
    let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
    // A listener may send, so the lock is not held while it hears.
    let Some(mut listener) = locked(shared).listeners.remove(&session) else { return };
    let parameters = message["params"].take();
    listener(message["method"].as_str().unwrap_or_default(), &parameters);
    locked(shared).listeners.entry(session).or_insert(listener);
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
