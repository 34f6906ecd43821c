//! A page of a browser.

use crate::Error;
use crate::pipe::{Listener, Pipe};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;

/// How long a page may take to load.
const LOADING: Duration = Duration::from_secs(30);

/// A page: clones are the same one.
#[derive(Clone)]
pub struct Page {
    pipe: Pipe,
    session: String,
}

impl Page {
    pub(crate) fn new(pipe: Pipe, session: String) -> Self {
        Self { pipe, session }
    }

    /// Goes to an address and waits until what is there has loaded. Whoever listened to the page is forgotten.
    ///
    /// # Errors
    /// Chromium does not, or not in time.
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
        let loaded = loaded.recv_timeout(LOADING);
        self.pipe.leave(&self.session);
        loaded.map_err(|_| Error::Late(format!("Page.navigate to {url}")))
    }

    /// Lets somebody hear the page's events by method and parameters, in place of who heard them before. It is called on
    /// the thread that reads from Chromium, so it must not wait for an answer.
    pub fn listen(&self, listener: impl FnMut(&str, &Value) + Send + 'static) {
        let listener: Listener = Box::new(listener);
        self.pipe.listen(&self.session, listener);
    }

    /// Calls a method of the protocol.
    ///
    /// # Errors
    /// Chromium does not do it.
    pub fn call(&self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.pipe.call(&self.session, method, parameters)
    }

    /// The value of an expression in the page; of a promise, what it comes to.
    ///
    /// # Errors
    /// It threw, or Chromium does not answer.
    pub fn evaluate(&self, expression: &str) -> Result<Value, Error> {
        let wanted =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.call("Runtime.evaluate", wanted)?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(details) => {
                let text = details["exception"]["description"].as_str().or(details["text"].as_str());
                Err(Error::Script(format!("`{}`: {}", shortened(expression), text.unwrap_or("it threw"))))
            }
        }
    }

    /// A picture of the page below `top` and above `bottom`, px, as PNG.
    ///
    /// # Errors
    /// Chromium takes none.
    pub fn picture(&self, (width, top, bottom): (f64, f64, f64)) -> Result<Vec<u8>, Error> {
        let clip = json!({"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1});
        let wanted = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", wanted)?;
        bytes(&answer["data"]).ok_or_else(|| refused("Page.captureScreenshot"))
    }

    /// Shows each picture of the page, as JPEG, to `seen` until the page goes: as they change, one in `every`, at most `width`
    /// px wide, the next when `seen` has returned. It takes the place of who listened to the page.
    ///
    /// # Errors
    /// Chromium shows none.
    pub fn screencast(
        &self,
        width: u32,
        every: u32,
        mut seen: impl FnMut(Vec<u8>) + Send + 'static,
    ) -> Result<(), Error> {
        let page = self.clone();
        self.listen(move |method, parameters| {
            if method != "Page.screencastFrame" {
                return;
            }
            if let Some(picture) = bytes(&parameters["data"]) {
                seen(picture);
            }
            let acknowledged = json!({"sessionId": parameters["sessionId"]});
            let _ = page.pipe.send(&page.session, "Page.screencastFrameAck", acknowledged);
        });
        let wanted =
            json!({"format": "jpeg", "quality": 70, "maxWidth": width, "maxHeight": width, "everyNthFrame": every});
        self.call("Page.startScreencast", wanted).map(|_| ())
    }
}

/// Bytes that came as base64.
fn bytes(data: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(data.as_str()?).ok()
}

fn refused(method: &str) -> Error {
    Error::Refused { method: method.to_owned(), cause: "there is nothing in the answer".to_owned() }
}

/// The beginning of a script, for a message.
fn shortened(script: &str) -> String {
    const MOST: usize = 80;
    let line: String = script.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}
