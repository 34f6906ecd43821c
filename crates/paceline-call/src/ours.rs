//! Our ends of calls. One loop serves those of a side; the threads of their calls ask them for what ends say of themselves.

use crate::endpoint::{Endpoint, EndpointError, MakeSource};
use paceline_lab::rows::Row;
use paceline_lab::world::WorldError;
use paceline_live::clock::Monotonic;
use paceline_live::media::Served;
use paceline_units::Time;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// How long an end may take to say something of itself: it is looked after twenty times a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an end is asked for.
#[derive(Debug)]
enum Ask {
    Offer,
    Answer(String),
    Accept(String),
}

/// A question, and where the answer goes.
#[derive(Debug)]
pub struct Question {
    ask: Ask,
    answer: Sender<Result<String, EndpointError>>,
}

/// What our senders send: the camera's pictures, encoded. None: this build has no encoder, and [`encoder`] says so.
pub fn source() -> Option<Box<dyn MakeSource>> {
    #[cfg(feature = "video")]
    {
        let camera = crate::camera::Camera::default();
        let sees = move |number: u64, picture: &mut Vec<u8>| camera.picture(number, picture);
        Some(Box::new(crate::endpoint::video::Vp8::new(Box::new(sees))))
    }
    #[cfg(not(feature = "video"))]
    None
}

/// Whether there is an encoder for what our senders send.
///
/// # Errors
/// This build has none, or the machine; and how to get it.
pub fn encoder() -> Result<(), WorldError> {
    #[cfg(feature = "video")]
    return crate::endpoint::video::probe();
    #[cfg(not(feature = "video"))]
    Err(WorldError::Unavailable {
        cause: "this build has no encoder for what our end sends".to_owned(),
        hint: "the feature `video` of paceline-call brings one; `browser` of the command does".to_owned(),
    })
}

/// How the thread of a call speaks to an end of ours. None: the end is gone.
#[derive(Clone, Debug)]
pub struct Ours {
    to: Sender<Question>,
}

impl Ours {
    /// A way to speak, and where an end hears.
    pub fn new() -> (Self, Receiver<Question>) {
        let (to, questions) = mpsc::channel();
        (Self { to }, questions)
    }

    /// What it offers.
    pub fn offer(&self) -> Option<Result<String, EndpointError>> {
        self.ask(Ask::Offer)
    }

    /// What it answers.
    pub fn answer(&self, offer: &str) -> Option<Result<String, EndpointError>> {
        self.ask(Ask::Answer(offer.to_owned()))
    }

    /// It hears the answer.
    pub fn accept(&self, answer: &str) -> Option<Result<String, EndpointError>> {
        self.ask(Ask::Accept(answer.to_owned()))
    }

    fn ask(&self, ask: Ask) -> Option<Result<String, EndpointError>> {
        let (answer, answered) = mpsc::channel();
        self.to.send(Question { ask, answer }).ok()?;
        answered.recv_timeout(PATIENCE).ok()
    }
}

/// An end of ours in the loop of its side.
pub struct OurEnd {
    /// The end.
    pub endpoint: Endpoint,
    /// What it is asked.
    pub questions: Receiver<Question>,
    /// When the call is over.
    pub stop: Time,
}

impl Served for OurEnd {
    type Room = ();

    fn timeout(&self) -> Time {
        self.endpoint.timeout()
    }

    fn stop(&self) -> Time {
        self.stop
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.endpoint.socket()
    }

    fn serve(&mut self, now: Time, clock: &Monotonic, (): &mut (), told: &Sender<Row>) -> io::Result<()> {
        while let Ok(Question { ask, answer }) = self.questions.try_recv() {
            let said = match ask {
                Ask::Offer => self.endpoint.offer(),
                Ask::Answer(offer) => self.endpoint.answer(&offer),
                Ask::Accept(answer) => self.endpoint.accept(&answer).map(|()| String::new()),
            };
            // Whoever asked may have gone.
            let _ = answer.send(said);
        }
        self.endpoint.serve(now, clock, told)
    }
}

impl Drop for OurEnd {
    fn drop(&mut self) {
        self.endpoint.close();
    }
}
