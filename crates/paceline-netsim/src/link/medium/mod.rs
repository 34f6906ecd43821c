//! Media that several links share: the links transmit one after the other, in an order that the medium decides.
//!
//! A link with packets requests the medium. The medium decides from arrival times, capacities and seed alone when the link
//! transmits, and what else happens to the packets. The driver calls [`Medium::advance`] before and after each arrival at
//! a member and each change of one, and at [`Medium::next_start`]; a late call makes the same decisions.
//!
//! To add one: a file here with a [`MediumEntry`], and a link server that names it, which declares its scenario keys.

mod half_duplex;
mod wifi;

pub use half_duplex::HALF_DUPLEX;
pub use wifi::{Order, WIFI, limits};

use super::hop::Link;
use crate::parameter::Values;
use paceline_units::{DataSize, RandomStreams, Time, TimeDelta};
use std::fmt;

/// A medium that links share. It knows its links by their indices in a slice, which the driver passes to each call.
pub trait Medium: Send {
    /// Returns the indices of the links.
    fn members(&self) -> &[usize];

    /// Returns the time of the next transmission, as of the last call of [`advance`](Self::advance); `None` if no link
    /// requests the medium.
    fn next_start(&self, links: &[Link]) -> Option<Time>;

    /// Handles a possible request of the link `hop`, and begins every transmission that is due by `now`. Returns whether
    /// links may have new outputs: those of [`changed`](Self::changed).
    fn advance(&mut self, now: Time, hop: usize, links: &mut [Link]) -> bool;

    /// Returns the links that may have new outputs since the last call of [`advance`](Self::advance).
    fn changed(&self) -> &[usize] {
        self.members()
    }
}

/// What a link may transmit in one turn on a shared medium. All packets of a batch leave at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Time that the turn takes besides the transmission of its packets, before the first of them.
    pub overhead: TimeDelta,
    /// The most packets, at least one.
    pub packets: u32,
    /// The most bytes; the first packet is sent in any case.
    pub bytes: DataSize,
    /// The longest turn, overhead included; the first packet is sent in any case.
    pub airtime: TimeDelta,
}

impl Batch {
    /// One packet per turn, without overhead.
    pub const SINGLE: Self = Self {
        overhead: TimeDelta::ZERO,
        packets: 1,
        bytes: DataSize::from_bytes(u64::MAX),
        airtime: TimeDelta::from_nanos(i64::MAX),
    };
}

/// How links share a medium, and how to create it.
pub struct MediumEntry {
    /// The name, in messages.
    pub name: &'static str,
    /// Returns a parameter in which two links of one medium contradict each other.
    pub conflict: fn(&Values, &Values) -> Option<&'static str>,
    /// Creates an idle medium.
    pub build: fn(&MediumSetup<'_>) -> Box<dyn Medium>,
}

/// The name alone: the text of a plan identifies its runs, and an address of a function differs in each process.
impl fmt::Debug for MediumEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for MediumEntry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The part of one hop in a shared medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumPlan {
    /// The name of the medium; hops with equal names share it.
    pub name: String,
    /// How they share it.
    pub entry: &'static MediumEntry,
    /// The parameters of the hop.
    pub values: Values,
}

/// The configuration of a medium.
pub struct MediumSetup<'a> {
    /// The links that share it.
    pub members: &'a [Member<'a>],
    /// The random streams of the run.
    pub streams: &'a RandomStreams,
    /// The path of the medium, such as `medium/air`.
    pub path: &'a str,
}

/// A link that shares a medium.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its index.
    pub hop: usize,
    /// The name of the hop.
    pub id: &'a str,
    /// Its parameters.
    pub values: &'a Values,
}

/// Returns the media that hops share, and the index of the medium of each hop. A hop is given by its name, and by its part in
/// a medium.
pub fn build_media<'a>(
    hops: impl Iterator<Item = (&'a str, Option<&'a MediumPlan>)> + Clone,
    streams: &RandomStreams,
) -> (Vec<Box<dyn Medium>>, Vec<Option<u16>>) {
    let mut names: Vec<&str> = Vec::new();
    let mut medium_of = Vec::new();
    for (_, plan) in hops.clone() {
        let index = plan.map(|plan| {
            names.iter().position(|other| *other == plan.name).unwrap_or_else(|| {
                names.push(&plan.name);
                names.len() - 1
            })
        });
        medium_of.push(index.map(|index| index as u16));
    }
    let build = |name: &&str| {
        let of_name = |(hop, (id, plan)): (usize, (&'a str, Option<&'a MediumPlan>))| {
            let plan = plan.filter(|plan| plan.name == **name)?;
            Some((plan.entry, Member { hop, id, values: &plan.values }))
        };
        let (entries, members): (Vec<_>, Vec<_>) = hops.clone().enumerate().filter_map(of_name).unzip();
        (entries[0].build)(&MediumSetup { members: &members, streams, path: &format!("medium/{name}") })
    };
    (names.iter().map(build).collect(), medium_of)
}
