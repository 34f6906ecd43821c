// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DevTools protocol over two pipes: JSON, each message ended by a zero byte.
//!
//! One thread writes and one reads, so long messages cannot cause a deadlock. When Chromium ends, the pipe closes and all
//! pending calls return an error.

use crate::chromium::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Longest wait for a reply. It is long because scripts may await events of the page.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A handler of page events: method and parameters.
pub type Listener = Box<dyn FnMut(&str, &Value) + Send>;

/// A connection to one browser. Clones share it.
#[derive(Clone)]
pub struct Pipe {
    out: Sender<Vec<u8>>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    last: u64,
    gone: bool,
    pending_calls: BTreeMap<u64, Sender<Value>>,
    listeners: BTreeMap<String, Listener>,
}

impl Pipe {
    /// Creates a connection over these ends of the pipes.
    pub fn new(mut to: impl Write + Send + 'static, from: impl Read + Send + 'static) -> Self {
        let (out, messages) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            while let Ok(message) = messages.recv() {
                // The reader detects the closed pipe.
                if to.write_all(&message).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
        });
        let shared = Arc::new(Mutex::new(Shared::default()));
        let reader = Arc::clone(&shared);
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut bytes = Vec::new();
            while from.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
                let message = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
                if let Ok(message) = message {
                    dispatch(&reader, message);
                }
                bytes.clear();
            }
            let mut shared = locked(&reader);
            shared.gone = true;
            shared.pending_calls.clear();
            shared.listeners.clear();
        });
        Self { out, shared }
    }

    /// Calls a method and waits for the reply. `session` is the page; it is empty for the browser.
    pub fn call(&self, session: &str, method: &str, parameters: Value) -> Result<Value, Error> {
        let answer = self.send(session, method, parameters)?;
        let answer = answer.recv_timeout(REPLY_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::Late(method.to_owned()),
            RecvTimeoutError::Disconnected => Error::Gone,
        })?;
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => {
                let cause = error["message"].as_str().unwrap_or("no reason given").to_owned();
                Err(Error::Refused { method: method.to_owned(), cause })
            }
        }
    }

    /// Calls a method without waiting and returns the channel of the reply.
    pub fn send(&self, session: &str, method: &str, parameters: Value) -> Result<Receiver<Value>, Error> {
        let (to, answer) = mpsc::channel();
        let id = {
            let mut shared = locked(&self.shared);
            if shared.gone {
                return Err(Error::Gone);
            }
            shared.last += 1;
            let id = shared.last;
            shared.pending_calls.insert(id, to);
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

    /// Sets the listener of a page's events; it replaces the previous one. The listener runs on the reading thread: it may
    /// [`send`](Self::send) but must not wait for a reply.
    pub fn listen(&self, session: &str, listener: Listener) {
        locked(&self.shared).listeners.insert(session.to_owned(), listener);
    }

    /// Removes the listener of a page.
    pub fn remove_listener(&self, session: &str) {
        let left = locked(&self.shared).listeners.remove(session);
        drop(left);
    }
}

/// Handles a received message: a reply or an event.
fn dispatch(shared: &Mutex<Shared>, mut message: Value) {
    if let Some(id) = message["id"].as_u64() {
        let call = locked(shared).pending_calls.remove(&id);
        // The caller may have timed out.
        let _ = call.map(|to| to.send(message));
        return;
    }
    let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
    // A listener may send, so the lock is not held during the call.
    let Some(mut listener) = locked(shared).listeners.remove(&session) else { return };
    let parameters = message["params"].take();
    listener(message["method"].as_str().unwrap_or_default(), &parameters);
    locked(shared).listeners.entry(session).or_insert(listener);
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
