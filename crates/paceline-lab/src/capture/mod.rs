//! A run as a pcapng file: what `run --pcap FILE` writes, and what Wireshark, tshark and tcpdump read.
//!
//! An interface for each place where a tap could sit: all senders, all receivers, both ends of every hop. Media packets
//! are the bytes that the ends exchanged; TCP segments become bytes here. Payload is a length: a packet is captured as
//! far as its bytes exist. Time zero of the run is [`EPOCH`]. Each packet has a comment, `flow=video packet=17 class=media`, with `queued_ms=12.345` at both ends of a
//! hop that it crosses and `dropped=overflow` where it came to a hop that dropped it.
//!
//! The guide for those who look at captures is `docs/captures.md`.

mod announcement;
mod headers;
mod taps;
mod timestamps;
mod waiting;

use crate::plan::Plan;
use crate::rows::{Row, RowSink, RunHeader};
use crate::sight::{Content, Sight};
use crate::store::StoreError;
use crate::store::files::{self, Temporary};
use crate::world::EPOCH;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taps::Taps;
use timestamps::Timestamps;
use waiting::{Record, Waiting};

/// Most hops that a capture has room for: a place is a byte of its packets' addresses.
pub const HOPS_MAX: usize = taps::HOPS_MAX;

/// Why a capture was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The run has more hops than a capture can tell apart.
    #[error("a capture has room for {HOPS_MAX} hops, and the scenario has {hops}")]
    TooManyHops {
        /// How many it has.
        hops: usize,
    },
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] StoreError),
}

/// A sink that writes what it sees into a file. Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub struct Capture {
    // Before `temporary`, so that the file is closed when it is removed.
    writer: PcapNgWriter<BufWriter<File>>,
    /// None: the file is a pipe or a device, which is written to as it is.
    temporary: Option<Temporary>,
    path: PathBuf,
    failed: Option<StoreError>,
    flows: Vec<String>,
    taps: Taps,
    timestamps: Timestamps,
    waiting: Waiting,
}

impl Capture {
    /// A capture of a run of `plan`, which is to stand at `path`. A regular file there is replaced at the end.
    ///
    /// # Errors
    /// More than [`HOPS_MAX`] hops, or the operating system refuses.
    pub fn create(path: &Path, plan: &Plan, header: &RunHeader) -> Result<Self, CaptureError> {
        let taps = Taps::new(plan).ok_or(CaptureError::TooManyHops { hops: plan.hops.len() })?;
        let (temporary, file) = open(path)?;
        let writer = begin(BufWriter::new(file), &taps, header).map_err(refused(path))?;
        let mut capture = Self {
            writer,
            temporary,
            path: path.to_path_buf(),
            failed: None,
            flows: header.flows.clone(),
            taps,
            timestamps: Timestamps::new(plan.flows.len()),
            waiting: Waiting::default(),
        };
        for record in announcement::all(plan, &capture.taps) {
            capture.write(&record).map_err(refused(path))?;
        }
        Ok(capture)
    }

    /// Writes the last packets and gives the file its name.
    ///
    /// # Errors
    /// What went wrong first, now or while packets came. An earlier file is then still in place. Whoever reads a pipe
    /// may leave when they have seen enough: that is no error.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.waiting.close();
        self.drain();
        // In this order, so that on an error the file is closed before it is removed.
        let Self { writer, temporary, path, failed, .. } = self;
        let left = |error: &StoreError| {
            let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
            temporary.is_none() && matches!(error, StoreError::Io { source, .. } if broken(source))
        };
        if let Some(failed) = failed {
            return if left(&failed) { Ok(()) } else { Err(failed.into()) };
        }
        let file = match writer.into_inner().into_inner().map_err(|e| files::io("write", &path)(e.into_error())) {
            Ok(file) => file,
            Err(error) if left(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(temporary) = temporary {
            file.sync_all().map_err(files::io("write", &path))?;
            temporary.replace(&path)?;
        }
        Ok(())
    }

    fn record(&mut self, sight: &Sight<'_>) -> Record {
        let flow = sight.packet.flow.0 as usize;
        let (bytes, size) = match sight.content {
            Content::Datagram(datagram) => headers::datagram(sight, self.taps.route(sight, 0), datagram),
            Content::Segment(segment) => {
                let route = self.taps.route(sight, segment.connection);
                let stamps = self.timestamps.of(sight, segment);
                headers::segment(sight, route, segment, stamps, self.taps.tcp(flow))
            }
        };
        let comment =
            format!("flow={} packet={} class={}", self.flows[flow], sight.packet.packet, sight.packet.class.name());
        let (interface, way) = self.taps.interface(sight);
        Record { at: sight.at, interface, way, bytes, size, comment }
    }

    fn drain(&mut self) {
        while let Some(record) = self.waiting.next() {
            if self.failed.is_none()
                && let Err(error) = self.write(&record)
            {
                self.failed = Some(refused(&self.path)(error));
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
                EnhancedPacketOption::Flags(record.way as u32),
                EnhancedPacketOption::Common(CommonOption::Comment(record.comment.as_str().into())),
            ],
        };
        self.writer.write_pcapng_block(block).map(|_| ())
    }
}

impl RowSink for Capture {
    fn row(&mut self, row: &Row) {
        if let Row::Dropped { packet, reason, .. } = row {
            self.timestamps.forget(packet.packet);
            self.waiting.settle(packet.packet, format_args!("dropped={}", reason.name()));
            self.drain();
        }
    }

    fn wants_sights(&self) -> bool {
        true
    }

    /// The first failure is kept for [`Capture::finish`]; nothing is written after it.
    fn sight(&mut self, sight: &Sight<'_>) {
        use crate::sight::Place::{Entry, Exit, Receiver, Sender};
        if self.failed.is_some() {
            return;
        }
        let mut record = self.record(sight);
        let packet = sight.packet.packet;
        match sight.place {
            Entry { .. } => self.waiting.push(record, Some(packet)),
            Exit { waited, .. } => {
                let queued = format!("queued_ms={:.3}", waited.as_nanos() as f64 / 1e6);
                self.waiting.settle(packet, format_args!("{queued}"));
                record.add(format_args!("{queued}"));
                self.waiting.push(record, None);
            }
            Sender | Receiver => self.waiting.push(record, None),
        }
        self.drain();
    }
}

/// A pipe or a device is opened as it is, anything else is written beside its place first.
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

/// What a capture begins with: the section, and an interface for each tap.
fn begin<W: Write>(out: W, taps: &Taps, header: &RunHeader) -> Result<PcapNgWriter<W>, PcapNgWriteError> {
    let about = format!("{}, world {}, seed {}", header.scenario, header.world, header.seed);
    let section = SectionHeaderBlock {
        endianness: Endianness::Little, // the same bytes on every machine
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

/// For `map_err`: the error of writing to `path`.
fn refused(path: &Path) -> impl FnOnce(PcapNgWriteError) -> StoreError {
    let io = files::io("write", path);
    |error| {
        io(match error {
            PcapNgWriteError::Io(error) => error,
            other => io::Error::other(other),
        })
    }
}
