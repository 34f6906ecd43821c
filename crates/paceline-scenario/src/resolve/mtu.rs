// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet sizes and the MTU of the hops that packets cross.

use super::{Checked, Resolver};
use crate::file::Flow;
use crate::forms::Timed;
use crate::text_span::{HasTextSpan, Spanned};
use paceline_netsim::flow::{MediaKind, PACKET_SIZE_DEFAULT, PACKET_SIZE_RANGE};
use paceline_netsim::link::{MTU, Schedule};
use paceline_netsim::plan::{FlowKind, FlowPlan, HopPlan};
use paceline_units::{DataSize, Time};
use std::ops::{Range, RangeInclusive};

/// From the size that every IPv4 host accepts (RFC 791, section 3.1), above that of RTCP compounds and acknowledgements, to
/// the largest IP packet.
const MTUS: RangeInclusive<DataSize> = DataSize::from_bytes(576)..=DataSize::from_bytes(65_535);

impl Resolver<'_> {
    pub(super) fn mtu(&mut self, spanned: &Spanned<Timed<DataSize>>) -> Checked<Schedule<DataSize>> {
        let schedule = self.schedule(spanned, spanned.get(), |_, mtu| Ok(*mtu))?;
        match schedule.points().iter().all(|(_, mtu)| MTUS.contains(mtu)) {
            true => Ok(schedule),
            false => self.fail(spanned, "an MTU must be 576 to 65535 bytes", "Ethernet has \"1500 B\", the default"),
        }
    }

    pub(super) fn packet_size(&self, spanned: &Option<Spanned<DataSize>>) -> Checked<DataSize> {
        let (least, most) = (PACKET_SIZE_RANGE.start().as_bytes(), PACKET_SIZE_RANGE.end().as_bytes());
        let message = format!("a packet size must be {least} to {most} bytes");
        let default = in_bytes(PACKET_SIZE_DEFAULT);
        let help = format!("leave the key out for {default}; IP and UDP headers are not part of it");
        let size = self.valid(spanned, |size| PACKET_SIZE_RANGE.contains(size), (&message, &help))?;
        Ok(size.unwrap_or(PACKET_SIZE_DEFAULT))
    }

    /// Checks that the largest packets of a flow fit each hop of its data. A hop that never carries them is an error; one
    /// that carries them at times is a note.
    pub(super) fn check_mtu(&mut self, flow: &Flow, plan: &FlowPlan, hops: &[HopPlan]) -> Checked<()> {
        if plan.media().is_some_and(|media| media.streams.iter().all(|stream| stream.kind == MediaKind::Audio)) {
            return Ok(()); // audio alone has small packets, without padding and FEC
        }
        let size = plan.largest_packet();
        for hop in plan.route.iter().map(|index| &hops[*index]) {
            let (id, hop_id) = (&plan.id, &hop.id);
            let fits = |mtu: &DataSize| *mtu >= size;
            let mut mtus = in_force(&hop.mtu, plan.start..plan.stop);
            if mtus.clone().any(|mtu| fits(&mtu)) {
                if !mtus.all(|mtu| fits(&mtu)) {
                    self.notes.push(format!(
                        "{id}: its packets of up to {} exceed the MTU of the hop `{hop_id}` for a while, which drops them",
                        in_bytes(size)
                    ));
                }
                continue;
            }
            let largest = mtus.max().unwrap_or(MTU);
            let (key, headers, given) = match &plan.kind {
                FlowKind::Media(media) => {
                    let given = flow.media.get().packet_size.as_ref().map(HasTextSpan::text_span);
                    ("packet_size", size - media.packet_size, given)
                }
                FlowKind::Tcp(tcp) => {
                    let given = flow.tcp.get().segment.as_ref().map(HasTextSpan::text_span);
                    ("segment", size - tcp.config.segment, given)
                }
            };
            let (has, allowed) = (in_bytes(size), in_bytes(largest));
            let message = format!("`{id}` has packets of {has}, but the MTU of its hop `{hop_id}` is {allowed}");
            let help = format!("write {key} = \"{}\" or less, or raise `mtu` of the hop", in_bytes(largest - headers));
            return self.fail(&given.unwrap_or(flow.id.text_span()), message, help);
        }
        Ok(())
    }
}

/// Returns the smallest MTU of the hops of a route within a span of time.
pub(super) fn path_mtu(route: &[usize], hops: &[HopPlan], span: Range<Time>) -> DataSize {
    route.iter().flat_map(|hop| in_force(&hops[*hop].mtu, span.clone())).min().unwrap_or(MTU)
}

/// Returns the values of a schedule that are in force within a span of time.
fn in_force(mtu: &Schedule<DataSize>, span: Range<Time>) -> impl Iterator<Item = DataSize> + Clone {
    let points = mtu.points().iter().filter(move |(from, _)| span.start < *from && *from < span.end);
    std::iter::once(*mtu.at(span.start)).chain(points.map(|(_, mtu)| *mtu))
}

/// Writes a size as a whole number of bytes.
fn in_bytes(size: DataSize) -> String {
    format!("{} B", size.as_bytes())
}
