// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of libwebrtc's `rtc_event_log2.proto` and `rtc_event_log.proto` as fields by number: few fields of each are read.

use super::BadRecord;
use super::delta::decode;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};
use std::collections::BTreeMap;

/// A message. Of a field that stands in it several times, the last value counts.
pub struct Fields<'a>(BTreeMap<u32, Value<'a>>);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// It is no protobuf message.
    pub fn read(mut rest: &'a [u8]) -> Result<Self, BadRecord> {
        let mut fields = BTreeMap::new();
        while !rest.is_empty() {
            let (field, kind) = decode_key(&mut rest)?;
            let value;
            match kind {
                WireType::Varint => value = Value::Number(decode_varint(&mut rest)?),
                WireType::ThirtyTwoBit => {
                    let number;
                    (number, rest) = rest.split_first_chunk().ok_or(BadRecord)?;
                    value = Value::Number(u32::from_le_bytes(*number).into());
                }
                WireType::LengthDelimited => {
                    let (length, bytes) = (decode_varint(&mut rest)?, rest);
                    let bytes = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
                    let (content, after) = bytes.ok_or(BadRecord)?;
                    (value, rest) = (Value::Bytes(content), after);
                }
                _ => {
                    skip_field(kind, field, &mut rest, DecodeContext::default())?;
                    continue;
                }
            }
            fields.insert(field, value);
        }
        Ok(Self(fields))
    }

    /// Returns a number, if the message has it.
    pub fn number(&self, field: u32) -> Option<u64> {
        match self.0.get(&field)? {
            Value::Number(number) => Some(*number),
            Value::Bytes(_) => None,
        }
    }

    /// Returns bytes; none if the message does not have them.
    pub fn bytes(&self, field: u32) -> &'a [u8] {
        match self.0.get(&field) {
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        }
    }

    /// Returns a message within this one, if there is one.
    pub fn message(&self, field: u32) -> Result<Option<Self>, BadRecord> {
        match self.0.get(&field) {
            Some(Value::Bytes(bytes)) => Self::read(bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns a number of the first event, and those of the `count` events that follow it, of which field + 100 has the deltas.
    pub fn column(&self, field: u32, count: usize) -> Result<Vec<Option<u64>>, BadRecord> {
        let first = self.number(field);
        let mut all = vec![first];
        all.append(&mut decode(self.bytes(field + 100), first, count)?);
        Ok(all)
    }
}

/// A message that is written, its fields in order.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    pub fn number(mut self, field: u32, value: impl Into<Option<u64>>) -> Self {
        if let Some(value) = value.into() {
            encode_key(field, WireType::Varint, &mut self.0);
            encode_varint(value, &mut self.0);
        }
        self
    }

    pub fn fixed(mut self, field: u32, value: u32) -> Self {
        encode_key(field, WireType::ThirtyTwoBit, &mut self.0);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.len() as u64, &mut self.0);
        self.0.extend(value);
        self
    }
}
