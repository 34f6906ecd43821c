// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run as a pcapng file, for Wireshark, tshark and tcpdump: `run --pcap FILE` writes it.
//!
//! The file has one interface for all senders, one for all receivers, and one for each end of every hop. Media packets
//! contain the bytes that the endpoints exchanged; TCP segments are serialised here. Payload has a length but no bytes,
//! so packets are truncated. Time zero of the run is [`EPOCH`]. Each packet has a comment such as
//! `flow=video packet=17 class=media`, with `queued_ms=12.345` at both ends of a hop that it crosses, and
//! `dropped=overflow` at the entry of a hop that dropped it.

mod announcement;
mod headers;
mod pending;
mod taps;
mod timestamps;

use crate::results::StoreError;
use crate::results::files::{self, Temporary};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{Content, EventObserver, EventRecord, RunHeader, TapPoint, TappedPacket};
use paceline_netsim::world::EPOCH;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use pending::{PendingRecords, Record};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taps::Taps;
use timestamps::Timestamps;

/// Maximum number of hops of a capture: a tap is one byte of its packets' addresses.
pub const HOPS_MAX: usize = taps::HOPS_MAX;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The run has more hops than a capture can represent.
    #[error("a capture supports at most {HOPS_MAX} hops, the scenario has {hops}")]
    TooManyHops { hops: usize },
    #[error(transparent)]
    File(#[from] StoreError),
}

/// An observer that writes a capture. If it is dropped before [`finish`](Self::finish), no file remains.
pub struct Capture {
    // Declared before `temporary`, so that the file is closed before it is removed.
    writer: PcapNgWriter<BufWriter<File>>,
    /// `None` if the file is a pipe or a device, which is written directly.
    temporary: Option<Temporary>,
    path: PathBuf,
    failed: Option<StoreError>,
    flows: Vec<String>,
    taps: Taps,
    timestamps: Timestamps,
    pending: PendingRecords,
}

impl Capture {
    /// Creates a capture of a run of `plan` at `path`. [`finish`](Self::finish) replaces a regular file there.
    ///
    /// # Errors
    /// The plan has more than [`HOPS_MAX`] hops, or a file operation fails.
    pub fn create(path: &Path, plan: &Plan, header: &RunHeader) -> Result<Self, CaptureError> {
        let taps = Taps::new(plan).ok_or(CaptureError::TooManyHops { hops: plan.hops.len() })?;
        let (temporary, file) = open(path)?;
        let writer = begin(BufWriter::new(file), &taps, header).map_err(write_error(path))?;
        let mut capture = Self {
            writer,
            temporary,
            path: path.to_path_buf(),
            failed: None,
            flows: header.flows.clone(),
            taps,
            timestamps: Timestamps::new(plan.flows.len()),
            pending: PendingRecords::default(),
        };
        for record in announcement::all(plan, &capture.taps) {
            capture.write(&record).map_err(write_error(path))?;
        }
        Ok(capture)
    }

    /// Writes the remaining packets and moves the file to its path.
    ///
    /// # Errors
    /// The first error of this call or of an earlier write. An existing file then stays in place. A reader that closes
    /// a pipe early is not an error.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.pending.close();
        self.drain();
        // In this order, so that after an error the file is closed before it is removed.
        let Self { writer, temporary, path, failed, .. } = self;
        let reader_left = |error: &StoreError| {
            let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
            temporary.is_none() && matches!(error, StoreError::Io { source, .. } if broken(source))
        };
        if let Some(failed) = failed {
            return if reader_left(&failed) { Ok(()) } else { Err(failed.into()) };
        }
        let file = match writer.into_inner().into_inner().map_err(|e| files::io("write", &path)(e.into_error())) {
            Ok(file) => file,
            Err(error) if reader_left(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(temporary) = temporary {
            file.sync_all().map_err(files::io("write", &path))?;
            temporary.replace(&path)?;
        }
        Ok(())
    }

    fn record(&mut self, packet: &TappedPacket<'_>) -> Record {
        let flow = packet.packet.flow.0 as usize;
        let (bytes, size) = match packet.content {
            Content::Datagram(datagram) => headers::datagram(packet, self.taps.route(packet, 0), datagram),
            Content::Segment(segment) => {
                let route = self.taps.route(packet, segment.connection);
                let stamps = self.timestamps.stamp(packet, segment);
                headers::segment(packet, route, segment, stamps, self.taps.tcp(flow))
            }
        };
        let comment =
            format!("flow={} packet={} class={}", self.flows[flow], packet.packet.packet, packet.packet.class.name());
        let (interface, direction) = self.taps.interface(packet);
        Record { at: packet.at, interface, direction, bytes, size, comment }
    }

    fn drain(&mut self) {
        while let Some(record) = self.pending.next() {
            if self.failed.is_none()
                && let Err(error) = self.write(&record)
            {
                self.failed = Some(write_error(&self.path)(error));
            }
        }
    }

    fn write(&mut self, record: &Record) -> Result<(), PcapNgWriteError> {
        let since = Duration::from_nanos((record.at - paceline_units::Time::ZERO).as_nanos().max(0) as u64);
        let block = EnhancedPacketBlock {
            interface_id: record.interface,
            timestamp: EPOCH + since,
            original_len: record.size,
            data: record.bytes.as_slice().into(),
            options: vec![
                EnhancedPacketOption::Flags(record.direction as u32),
                EnhancedPacketOption::Common(CommonOption::Comment(record.comment.as_str().into())),
            ],
        };
        self.writer.write_pcapng_block(block).map(|_| ())
    }
}

impl EventObserver for Capture {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Dropped { packet, reason, .. } = event {
            self.timestamps.forget(packet.packet);
            self.pending.resolve(packet.packet, format_args!("dropped={}", reason.name()));
            self.drain();
        }
    }

    fn wants_taps(&self) -> bool {
        true
    }

    /// Keeps the first error for [`Capture::finish`]; after it nothing is written.
    fn on_tap(&mut self, packet: &TappedPacket<'_>) {
        if self.failed.is_some() {
            return;
        }
        let mut record = self.record(packet);
        let number = packet.packet.packet;
        match packet.point {
            TapPoint::Entry { .. } => self.pending.push(record, Some(number)),
            TapPoint::Exit { waited, .. } => {
                let queued = format!("queued_ms={:.3}", waited.as_nanos() as f64 / 1e6);
                self.pending.resolve(number, format_args!("{queued}"));
                record.add(format_args!("{queued}"));
                self.pending.push(record, None);
            }
            TapPoint::Sender | TapPoint::Receiver => self.pending.push(record, None),
        }
        self.drain();
    }
}

/// Opens a pipe or a device directly; for any other path opens a temporary file.
fn open(path: &Path) -> Result<(Option<Temporary>, File), StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(files::io("write", path)(io::ErrorKind::IsADirectory.into())),
        Ok(found) if !found.is_file() => {
            let file = File::options().write(true).open(path).map_err(files::io("write", path))?;
            Ok((None, file))
        }
        _ => Temporary::open(path).map(|(temporary, file)| (Some(temporary), file)),
    }
}

/// Writes the start of a capture: the section, and an interface for each tap.
fn begin<W: Write>(out: W, taps: &Taps, header: &RunHeader) -> Result<PcapNgWriter<W>, PcapNgWriteError> {
    let about = format!("{}, world {}, seed {}", header.scenario, header.world, header.seed);
    let section = SectionHeaderBlock {
        endianness: Endianness::Little, // the same bytes on every host
        options: vec![
            SectionHeaderOption::UserApplication(concat!("paceline ", env!("CARGO_PKG_VERSION")).into()),
            SectionHeaderOption::Common(CommonOption::Comment(about.into())),
        ],
        ..Default::default()
    };
    let mut writer = PcapNgWriter::with_section_header(out, section)?;
    for tap in taps.iter() {
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(tap.name.as_str().into()),
                InterfaceDescriptionOption::IfDescription(tap.description.as_str().into()),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        })?;
    }
    Ok(writer)
}

fn write_error(path: &Path) -> impl FnOnce(PcapNgWriteError) -> StoreError {
    let io = files::io("write", path);
    |error| {
        io(match error {
            PcapNgWriteError::Io(error) => error,
            other => io::Error::other(other),
        })
    }
}
