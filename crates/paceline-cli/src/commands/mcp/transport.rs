// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages as lines of standard input and output. That of the library answers no line that is not JSON and drops what is in progress at the
//! end of the input.

use rmcp::ErrorData;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};

/// The longest line, bytes.
const LINE_MAX: usize = 1 << 20;

/// The lines of a client, and of the server.
#[derive(Clone)]
pub struct Lines(Arc<State>);

struct State {
    /// Lines; `None` is one that is too long.
    lines: tokio::sync::Mutex<mpsc::Receiver<Option<Vec<u8>>>>,
    /// Requests without an answer.
    pending: Mutex<Vec<RequestId>>,
    answered: Notify,
    is_ended: AtomicBool,
}

impl Lines {
    /// Reads standard input in a thread.
    pub fn of_stdio() -> Self {
        let (to, lines) = mpsc::channel(16);
        std::thread::spawn(move || read(io::stdin().lock(), &to));
        let (lines, pending) = (tokio::sync::Mutex::new(lines), Mutex::default());
        Self(Arc::new(State { lines, pending, answered: Notify::new(), is_ended: AtomicBool::new(false) }))
    }

    /// Returns whether the input has ended.
    pub fn is_ended(&self) -> bool {
        self.0.is_ended.load(Ordering::Relaxed)
    }

    fn pending(&self, change: impl FnOnce(&mut Vec<RequestId>)) -> usize {
        let mut pending = self.0.pending.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut pending);
        pending.len()
    }

    fn write(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let written = out.write_all(&line).and_then(|()| out.flush());
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        self.forget(id);
        written
    }

    fn forget(&self, id: Option<&RequestId>) {
        self.pending(|pending| pending.retain(|other| Some(other) != id));
        self.0.answered.notify_one();
    }
}

/// Sends the lines of an input until it ends.
fn read(mut input: impl BufRead, to: &mpsc::Sender<Option<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let most = LINE_MAX as u64 + 1;
        if !input.by_ref().take(most).read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            return;
        }
        let is_whole = line.len() <= LINE_MAX || line.ends_with(b"\n");
        if !is_whole && input.skip_until(b'\n').is_err() || to.blocking_send(is_whole.then_some(line)).is_err() {
            return;
        }
    }
}

/// Reads a message; the error is the answer to a line that is none.
fn message(line: Option<&[u8]>) -> Result<ClientJsonRpcMessage, (ErrorData, Option<RequestId>)> {
    let Some(line) = line else {
        let text = format!("a line is longer than {LINE_MAX} bytes");
        return Err((ErrorData::invalid_request(text, None), None));
    };
    let value: Value =
        serde_json::from_slice(line).map_err(|error| (ErrorData::parse_error(error.to_string(), None), None))?;
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let has_method = value.get("method").is_some_and(Value::is_string) && id.is_some();
    serde_json::from_value(value).map_err(|error| {
        let code = if has_method { ErrorCode::INVALID_PARAMS } else { ErrorCode::INVALID_REQUEST };
        (ErrorData::new(code, error.to_string(), None), id)
    })
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = self.clone();
        async move { lines.write(&item) }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(line) = self.0.lines.lock().await.recv().await else { break };
            if line.as_ref().is_some_and(|line| line.trim_ascii().is_empty()) {
                continue;
            }
            match message(line.as_deref()) {
                Ok(message) => {
                    match &message {
                        JsonRpcMessage::Request(request) => _ = self.pending(|all| all.push(request.id.clone())),
                        JsonRpcMessage::Notification(notification) => {
                            // A cancelled request has no answer.
                            if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                                self.forget(cancelled.params.request_id.as_ref());
                            }
                        }
                        _ => {}
                    }
                    return Some(message);
                }
                Err((error, id)) => {
                    if self.write(&ServerJsonRpcMessage::error(error, id)).is_err() {
                        break;
                    }
                }
            }
        }
        // What is in progress is answered.
        while self.pending(|_| ()) > 0 {
            self.0.answered.notified().await;
        }
        self.0.is_ended.store(true, Ordering::Relaxed);
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
