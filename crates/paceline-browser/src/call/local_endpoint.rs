// SPDX-License-Identifier: MIT OR Apache-2.0
//! Local endpoints of calls. One loop serves the endpoints of a side. The threads of the calls exchange session descriptions
//! with them over channels.

use crate::call::endpoint::{Endpoint, EndpointError, MakeSource};
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::media_endpoint::MediaEndpoint;
use paceline_netsim::ControllerFailure;
use paceline_netsim::records::EventRecord;
use paceline_netsim::world::WorldError;
use paceline_units::{Rate, Time};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Longest wait for a session description. The loop serves each endpoint twenty times a second.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A signalling step. The result of the last one is empty.
#[derive(Debug)]
pub enum Action {
    /// The offer of a sender, whose encoder is limited to this rate if it is Chromium.
    Offer(Rate),
    /// The answer to an offer.
    Answer(String),
    /// Hands over the answer of the receiver.
    Accept(String),
}

/// A signalling step and the channel for its result.
#[derive(Debug)]
pub struct Request {
    action: Action,
    reply: Sender<Result<String, EndpointError>>,
}

/// Returns the media source of local senders: the camera's pictures, encoded. `None` if this build has no encoder.
pub fn source() -> Option<Box<dyn MakeSource>> {
    #[cfg(feature = "video")]
    {
        use crate::call::camera::Camera;
        let camera = Camera::default();
        let render =
            move |number: u64, picture: &mut Vec<u8>| camera.picture(Camera::as_chromium_plays(number), picture);
        Some(Box::new(crate::call::endpoint::video::Vp8(Box::new(render))))
    }
    #[cfg(not(feature = "video"))]
    None
}

/// Checks that local senders have an encoder.
///
/// # Errors
/// This build or this machine has no encoder; the error contains a hint.
pub fn encoder() -> Result<(), WorldError> {
    #[cfg(feature = "video")]
    return crate::call::endpoint::video::probe();
    #[cfg(not(feature = "video"))]
    Err(WorldError::Unavailable {
        cause: "this build has no video encoder for local senders".to_owned(),
        hint: "build paceline-browser with the feature `video`, or the command with `browser`".to_owned(),
    })
}

/// Sends signalling requests to a local endpoint.
#[derive(Clone, Debug)]
pub struct EndpointHandle {
    requests: Sender<Request>,
}

impl EndpointHandle {
    /// Creates a handle and the channel that its endpoint reads.
    pub fn new() -> (Self, Receiver<Request>) {
        let (requests, receiver) = mpsc::channel();
        (Self { requests }, receiver)
    }

    /// Requests a step. Returns `None` if the endpoint does not reply.
    pub fn request(&self, action: Action) -> Option<Result<String, EndpointError>> {
        let (reply, replies) = mpsc::channel();
        self.requests.send(Request { action, reply }).ok()?;
        replies.recv_timeout(REPLY_TIMEOUT).ok()
    }
}

/// A local endpoint in the loop of its side.
pub struct LocalEndpoint {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Signalling requests.
    pub requests: Receiver<Request>,
    /// End of the call.
    pub stop: Time,
}

impl MediaEndpoint for LocalEndpoint {
    type Buffers = ();

    fn timeout(&self) -> Option<Time> {
        Some(self.endpoint.timeout())
    }

    fn stop(&self) -> Time {
        self.stop
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.endpoint.socket()
    }

    fn serve(&mut self, now: Time, clock: &Monotonic, (): &mut (), events: &Sender<EventRecord>) -> io::Result<()> {
        while let Ok(Request { action, reply }) = self.requests.try_recv() {
            let result = match action {
                Action::Offer(_) => self.endpoint.offer(),
                Action::Answer(offer) => self.endpoint.answer(&offer),
                Action::Accept(answer) => self.endpoint.accept(&answer).map(|()| String::new()),
            };
            // The caller may have timed out.
            let _ = reply.send(result);
        }
        self.endpoint.serve(now, clock, events)
    }

    fn check_controller(&mut self) -> Result<(), ControllerFailure> {
        self.endpoint.check_controller()
    }
}

impl Drop for LocalEndpoint {
    fn drop(&mut self) {
        self.endpoint.close();
    }
}
