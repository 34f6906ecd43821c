// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of a browser.

use crate::chromium::error::Error;
use crate::chromium::pipe::{Listener, Pipe};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;

/// Longest time to load a page.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A page. Clones refer to the same page.
#[derive(Clone)]
pub struct Page {
    pipe: Pipe,
    session: String,
}

impl Page {
    pub(crate) fn new(pipe: Pipe, session: String) -> Self {
        Self { pipe, session }
    }

    /// Opens an address and waits until it has loaded. Removes the page's listener.
    ///
    /// # Errors
    /// Chromium refuses, or the page does not load in time.
    pub fn navigate(&self, url: &str) -> Result<(), Error> {
        let (to, loaded) = mpsc::channel();
        self.listen(move |method, _| {
            if method == "Page.loadEventFired" {
                let _ = to.send(());
            }
        });
        self.call("Page.enable", json!({}))?;
        let answer = self.call("Page.navigate", json!({"url": url}))?;
        if let Some(cause) = answer["errorText"].as_str() {
            return Err(Error::Refused { method: format!("Page.navigate to {url}"), cause: cause.to_owned() });
        }
        let loaded = loaded.recv_timeout(LOAD_TIMEOUT);
        self.pipe.remove_listener(&self.session);
        loaded.map_err(|_| Error::Late(format!("Page.navigate to {url}")))
    }

    /// Sets the listener of the page's events (method and parameters); it replaces the previous one. The listener runs on
    /// the thread that reads from Chromium, so it must not wait for a reply.
    pub fn listen(&self, listener: impl FnMut(&str, &Value) + Send + 'static) {
        let listener: Listener = Box::new(listener);
        self.pipe.listen(&self.session, listener);
    }

    /// Calls a protocol method of the page.
    pub fn call(&self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.pipe.call(&self.session, method, parameters)
    }

    /// Evaluates an expression in the page and returns its value. A promise is awaited.
    ///
    /// # Errors
    /// The script throws, or Chromium does not reply.
    pub fn evaluate(&self, expression: &str) -> Result<Value, Error> {
        let wanted =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.call("Runtime.evaluate", wanted)?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(details) => {
                let text = details["exception"]["description"].as_str().or(details["text"].as_str());
                Err(Error::Script(format!("`{}`: {}", shortened(expression), text.unwrap_or("exception"))))
            }
        }
    }

    /// Returns a PNG of the page between `top` and `bottom`, px.
    pub fn screenshot(&self, (width, top, bottom): (f64, f64, f64)) -> Result<Vec<u8>, Error> {
        let clip = json!({"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1});
        let wanted = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", wanted)?;
        bytes(&answer["data"]).ok_or_else(|| refused("Page.captureScreenshot"))
    }

    /// Calls `on_frame` with a JPEG of the page when the page has changed: one of `every` frames, at most `width` px wide. The
    /// next frame follows after `on_frame` has returned. Replaces the page's listener.
    pub fn screencast(
        &self,
        width: u32,
        every: u32,
        mut on_frame: impl FnMut(Vec<u8>) + Send + 'static,
    ) -> Result<(), Error> {
        let page = self.clone();
        self.listen(move |method, parameters| {
            if method != "Page.screencastFrame" {
                return;
            }
            if let Some(picture) = bytes(&parameters["data"]) {
                on_frame(picture);
            }
            let acknowledged = json!({"sessionId": parameters["sessionId"]});
            let _ = page.pipe.send(&page.session, "Page.screencastFrameAck", acknowledged);
        });
        let wanted =
            json!({"format": "jpeg", "quality": 70, "maxWidth": width, "maxHeight": width, "everyNthFrame": every});
        self.call("Page.startScreencast", wanted).map(|_| ())
    }
}

/// Decodes base64 data.
fn bytes(data: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(data.as_str()?).ok()
}

fn refused(method: &str) -> Error {
    Error::Refused { method: method.to_owned(), cause: "the reply has no data".to_owned() }
}

/// Shortens a script for an error message.
fn shortened(script: &str) -> String {
    const MOST: usize = 80;
    let line: String = script.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}
