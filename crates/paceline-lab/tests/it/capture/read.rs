// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pcapng file as a list of packets.

use paceline_netsim::world::EPOCH;
use paceline_units::Time;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Packet {
    pub interface: String,
    pub at: Time,
    /// Full length; `bytes` may be shorter.
    pub size: u32,
    pub bytes: Vec<u8>,
    /// The words of the comment, by key.
    pub comment: BTreeMap<String, String>,
}

impl Packet {
    pub fn number(&self) -> u64 {
        self.comment["packet"].parse().unwrap()
    }
}

pub struct File {
    pub interfaces: Vec<String>,
    pub packets: Vec<Packet>,
}

impl File {
    pub fn read(path: &Path) -> Self {
        let mut reader = PcapNgReader::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap();
        let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap().0 {
                Block::InterfaceDescription(interface) => {
                    let name = interface.options.iter().find_map(|o| match o {
                        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                        _ => None,
                    });
                    interfaces.push(name.unwrap());
                }
                Block::EnhancedPacket(packet) => {
                    let comment = packet.options.iter().find_map(|o| match o {
                        EnhancedPacketOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
                        _ => None,
                    });
                    let words = comment.unwrap();
                    let words = words.split(' ').map(|w| w.split_once('=').expect(w));
                    packets.push(Packet {
                        interface: interfaces[packet.interface_id as usize].clone(),
                        at: Time::from_nanos((packet.timestamp - EPOCH).as_nanos() as i64),
                        size: packet.original_len,
                        bytes: packet.data.into_owned(),
                        comment: words.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
                    });
                }
                _ => {}
            }
        }
        Self { interfaces, packets }
    }

    pub fn at(&self, interface: &str) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(move |p| p.interface == interface)
    }
}
