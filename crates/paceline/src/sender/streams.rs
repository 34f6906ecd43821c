// SPDX-License-Identifier: MIT OR Apache-2.0
//! The streams of a sender, and how they share the target: minima first, then the rest by priority, up to the maxima.

use super::StreamConfig;
use super::allocation::{RateRequest, divide, needed};
use super::frame_waits::FrameWaits;
use crate::MediaKind;
use crate::blocks::UnusedRate;
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, StreamId};

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct SenderStream {
    pub config: StreamConfig,
    /// Whether the stream ended. Its packets in the pacer still leave.
    pub removed: bool,
    /// Whether the target leaves too little for the stream, so that it pauses.
    pub suspended: bool,
    /// Its packets in the pacer.
    pub queued: DataSize,
    /// Its frames in the pacer.
    pub waits: FrameWaits,
    /// Its share of the target.
    pub share: Rate,
    /// The part of it that the source did not use.
    pub unused: UnusedRate,
    /// The media timestamp of the last frame.
    pub timestamp: u32,
}

impl SenderStream {
    fn new(config: StreamConfig) -> Self {
        Self {
            timestamp: config.timestamp_offset,
            config,
            removed: false,
            suspended: false,
            queued: DataSize::ZERO,
            waits: FrameWaits::default(),
            share: Rate::ZERO,
            unused: UnusedRate::default(),
        }
    }

    /// Returns whether the stream ended, or pauses until its maximum rises.
    #[inline]
    pub fn is_inactive(&self) -> bool {
        self.removed || self.config.max.is_zero()
    }

    /// Returns whether padding may be sent as a part of this stream.
    #[inline]
    pub fn carries_padding(&self) -> bool {
        self.config.kind == MediaKind::Video && !self.is_inactive()
    }

    /// Returns the rates that the stream requests, where `highest` stands for a maximum of [`Rate::MAX`]. A suspended stream requests them as well.
    #[inline]
    fn request(&self, highest: Option<Rate>) -> RateRequest {
        let StreamConfig { priority, min, max, .. } = self.config;
        let max = if max == Rate::MAX { highest.unwrap_or(max) } else { max };
        let (min, max) = if self.is_inactive() { (Rate::ZERO, Rate::ZERO) } else { (min, max.max(min)) };
        RateRequest { priority, min, max }
    }
}

/// The result of a division of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// The rate up to which padding fills.
    pub padding: Rate,
    /// Whether a share changed.
    pub is_changed: bool,
}

/// The streams in the order in which they were added. A stream that ended keeps its place.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    pub list: Vec<SenderStream>,
    /// The highest maximum of the target so far; `None`: it has none.
    highest: Option<Rate>,
    requests: Vec<RateRequest>,
    shares: Vec<Rate>,
    /// Streams that resumed in the last division.
    pub resumed: Vec<StreamId>,
}

impl Streams {
    pub fn new() -> Self {
        Self { list: Vec::new(), highest: None, requests: Vec::new(), shares: Vec::new(), resumed: Vec::new() }
    }

    /// Handles a maximum of the target. A lower one leaves the sources what they can use.
    pub fn handle_max(&mut self, max: Rate) {
        self.highest = self.highest.max(Some(max));
    }

    /// Returns the rates that the stream at a place requests.
    #[inline]
    pub fn request(&self, place: usize) -> RateRequest {
        self.list[place].request(self.highest)
    }

    pub fn add(&mut self, config: StreamConfig) -> usize {
        self.list.push(SenderStream::new(config));
        self.list.len() - 1
    }

    /// Returns the place of a stream that has not ended.
    pub fn find(&self, id: StreamId) -> Option<usize> {
        // Most flows have one stream.
        self.list.iter().position(|stream| stream.config.id == id && !stream.removed)
    }

    #[inline]
    pub fn carry_padding(&self) -> bool {
        self.list.iter().any(SenderStream::carries_padding)
    }

    /// Returns the highest rate that the streams can use; zero while all pause.
    pub fn desired_rate(&self) -> Rate {
        self.list.iter().map(|stream| stream.request(self.highest).max).sum()
    }

    /// Divides what repair leaves of the target. `half_share` returns the rate of a stream if the controller divides the
    /// target itself.
    pub fn divide(
        &mut self,
        target: Rate,
        reserved: Rate,
        padding: Rate,
        half_share: impl Fn(StreamId) -> Option<Rate>,
    ) -> Division {
        let media = target.saturating_sub(reserved);
        // Most flows have one stream.
        if let [stream] = &mut self.list[..]
            && !stream.config.suspends
        {
            let most = stream.request(self.highest).max;
            let share = half_share(stream.config.id).unwrap_or(media.min(most));
            let is_changed = core::mem::replace(&mut stream.share, share) != share;
            return Division {
                padding: if stream.carries_padding() { padding.min(most) } else { Rate::ZERO },
                is_changed,
            };
        }
        self.requests.clear();
        self.requests.extend(self.list.iter().map(|stream| stream.request(self.highest)));
        let most = self.requests.iter().map(|request| request.max).sum();
        // Padding proves the capacity that the next layer needs (libwebrtc's `pad_up_to_bitrate_bps`).
        let resumes_at = self.suspend(media).min(target);
        let padding = if self.carry_padding() { padding.max(resumes_at).min(most) } else { Rate::ZERO };
        self.shares.clear();
        self.shares.resize(self.list.len(), Rate::ZERO);
        divide(media, &self.requests, &mut self.shares);
        let mut is_changed = false;
        for (stream, share) in self.list.iter_mut().zip(&self.shares) {
            // The half knows no stream before its first frame, so that more than the target may be divided until then.
            let share = if stream.suspended { *share } else { half_share(stream.config.id).unwrap_or(*share) };
            is_changed |= core::mem::replace(&mut stream.share, share) != share;
        }
        Division { padding, is_changed }
    }

    /// Suspends and resumes the streams that pause while the target is low: each needs its lowest rate after the highest
    /// rates of the streams before it, and more than that to resume. Suspended streams request nothing. Returns the rate at
    /// which the next one resumes; zero if none is suspended.
    fn suspend(&mut self, total: Rate) -> Rate {
        self.resumed.clear();
        let mut resumes_at = Rate::ZERO;
        if !self.list.iter().any(|stream| stream.config.suspends) {
            return resumes_at;
        }
        let mut before = Rate::ZERO;
        for (stream, request) in self.list.iter_mut().zip(&mut self.requests) {
            if stream.config.suspends && !stream.is_inactive() {
                let suspended = total < before + needed(request.min, stream.suspended);
                if stream.suspended && !suspended {
                    self.resumed.push(stream.config.id);
                }
                stream.suspended = suspended;
                if suspended && resumes_at.is_zero() {
                    resumes_at = before + needed(request.min, true);
                }
            }
            if stream.suspended {
                (request.min, request.max) = (Rate::ZERO, Rate::ZERO);
            }
            before += request.max;
        }
        resumes_at
    }
}
