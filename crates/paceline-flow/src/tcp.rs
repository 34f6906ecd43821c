//! stub
use paceline::{SignalSpec, Signals};
use paceline_units::{DataSize, RandomStream, Time, TimeDelta};
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    pub payload: u32,
}
impl Segment {
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(52 + self.payload as u64)
    }
}
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile;
impl Profile {
    pub const NAMES: [(&'static str, &'static str); 2] = [("rfc", ""), ("linux", "")];
    pub fn named(_: &str) -> Option<Self> {
        Some(Self)
    }
}
pub struct Named {
    pub name: &'static str,
}
pub const CONGESTION: &[Named] = &[Named { name: "cubic" }];
#[derive(Clone, Debug, Default)]
pub struct TcpConfig {
    pub congestion: &'static str,
    pub profile: Profile,
    pub mss: DataSize,
    pub receive_window: Option<DataSize>,
}
#[derive(Clone, Debug)]
pub enum Workload {
    Bulk,
    OnOff { on: TimeDelta, off: TimeDelta },
    Short { size: (DataSize, DataSize), pause: TimeDelta },
}
impl Workload {
    pub const NAMES: [(&'static str, &'static str); 3] = [("bulk", ""), ("on-off", ""), ("short", "")];
}
pub struct TcpSender;
pub struct TcpReceiver;
pub enum TcpSent {
    Data,
    Retransmission,
    Control,
}
pub enum TcpSenderEvent {
    Signal(u8, f64),
}
pub enum TcpReceiverEvent {
    Read(DataSize),
}
impl TcpSender {
    pub const SIGNALS: &'static [SignalSpec] = &[];
    pub fn new(_: TcpConfig, _: Workload, _: Time, _: RandomStream, _: Signals) -> Self {
        Self
    }
    pub fn handle_segment(&mut self, _: Time, _: &Segment) {}
    pub fn handle_timeout(&mut self, _: Time) {}
    pub fn poll_transmit(&mut self, _: Time) -> Option<(Segment, TcpSent)> {
        None
    }
    pub fn poll_event(&mut self) -> Option<TcpSenderEvent> {
        None
    }
    pub fn poll_timeout(&self) -> Time {
        Time::MAX
    }
}
impl TcpReceiver {
    pub fn new(_: TcpConfig) -> Self {
        Self
    }
    pub fn handle_segment(&mut self, _: Time, _: &Segment) {}
    pub fn handle_timeout(&mut self, _: Time) {}
    pub fn poll_transmit(&mut self, _: Time) -> Option<Segment> {
        None
    }
    pub fn poll_event(&mut self) -> Option<TcpReceiverEvent> {
        None
    }
    pub fn poll_timeout(&self) -> Time {
        Time::MAX
    }
}
