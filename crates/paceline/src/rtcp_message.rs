// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of the receive half to the send half, as RTCP: a REMB or an application-defined packet.

use crate::{AppMessage, Message, NadaMode, NadaReport};
use paceline_wire::{CompoundWriter, NadaFeedback, Rtcp, WriteError};

/// Writes a message.
///
/// # Errors
/// The buffer is too small.
pub fn write(
    message: &Message,
    own_ssrc: u32,
    streams: &[u32],
    writer: &mut CompoundWriter<'_>,
) -> Result<(), WriteError> {
    match *message {
        Message::Remb(rate) => writer.remb(own_ssrc, rate, streams),
        Message::Nada(NadaReport { mode, signal, incoming }) => {
            writer.nada(own_ssrc, &NadaFeedback { gradual: mode == NadaMode::Gradual, signal, rate: incoming })
        }
        Message::App(app) => writer.app(own_ssrc, app.subtype(), app.name(), app.data()),
    }
}

/// Returns the bytes of a message, which names this many streams.
pub fn len(message: &Message, streams: usize) -> usize {
    match message {
        Message::Remb(_) => 20 + 4 * streams,
        Message::Nada(_) => 12 + 8,
        Message::App(app) => 12 + 4 * app.data().len(),
    }
}

/// Returns the message in a packet, if there is one.
pub fn read(packet: &Rtcp<'_>) -> Option<Message> {
    match *packet {
        Rtcp::Remb { rate, .. } => Some(Message::Remb(rate)),
        Rtcp::Nada { feedback: NadaFeedback { gradual, signal, rate }, .. } => {
            let mode = if gradual { NadaMode::Gradual } else { NadaMode::RampUp };
            Some(Message::Nada(NadaReport { mode, signal, incoming: rate }))
        }
        Rtcp::App { subtype, name, data, .. } => {
            let mut words = [0; AppMessage::WORDS_MAX];
            let (chunks, rest) = data.as_chunks::<4>();
            let words = words.get_mut(..chunks.len()).filter(|_| rest.is_empty())?;
            words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u32::from_be_bytes(*bytes));
            AppMessage::new(name, subtype, words).map(Message::App)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{Rate, TimeDelta};
    use paceline_wire::parse_compound;

    /// Precision: a microsecond, a tenth of a millisecond, a bit per second; 18 bits of a REMB.
    #[test]
    fn messages_survive_a_round_trip() {
        let us = TimeDelta::from_micros;
        let messages = [
            Message::Remb(Rate::from_kbps(1250)),
            Message::Nada(NadaReport { mode: NadaMode::RampUp, signal: us(9_900), incoming: Rate::from_bps(999_999) }),
            Message::Nada(NadaReport { mode: NadaMode::Gradual, signal: us(3_276_700), incoming: Rate::ZERO }),
            Message::App(AppMessage::new(*b"MINE", 31, &[u32::MAX, 0, 7]).unwrap()),
            Message::App(AppMessage::new(*b"MINE", 0, &[]).unwrap()),
        ];
        let mut buffer = [0; 256];
        let mut writer = CompoundWriter::new(&mut buffer);
        for message in &messages {
            let before = writer.len();
            write(message, 1, &[1000], &mut writer).unwrap();
            assert_eq!(writer.len() - before, len(message, 1), "{message:?}");
        }
        let len = writer.finish();
        let packets = parse_compound(&buffer[..len]).unwrap().into_iter();
        assert!(packets.map(|packet| read(&packet)).eq(messages.map(Some)));
        let mut writer = CompoundWriter::new(&mut buffer);
        writer.pli(1, 1000).unwrap();
        assert_eq!(read(&parse_compound(&buffer[..12]).unwrap().into_iter().next().unwrap()), None);
    }
}
