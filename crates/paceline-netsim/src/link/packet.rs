//! A packet as a link handles it.

use paceline_units::{DataSize, Ecn, FlowId};

/// The properties of a packet that a link needs. The driver keeps the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Handle of the driver; the link does not interpret it.
    pub id: u32,
    /// The flow of the packet.
    pub flow: FlowId,
    /// Size on this link, headers included.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
}
