// SPDX-License-Identifier: GPL-2.0-only
//! Protocol buffers' wire format, as far as it is written here.

/// How a field's value is written.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A message, encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Adds a number.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// Adds a `fixed64`.
    pub(super) fn fixed64(mut self, field: u32, value: u64) -> Self {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds a string.
    pub(super) fn text(mut self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes());
        self
    }

    /// Adds a message.
    pub(super) fn message(mut self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0);
        self
    }

    /// It.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Seven bits a byte, the least significant first.
    #[allow(clippy::cast_possible_truncation, reason = "masked to seven bits")]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// Examples of the format's own documentation.
    #[test]
    fn bytes_are_those_of_the_formats_documentation() {
        assert_eq!(
            Message::default().number(1, 150).as_bytes(),
            [0x08, 0x96, 0x01]
        );
        let testing = Message::default().text(2, "testing");
        assert_eq!(testing.as_bytes(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        let outer = Message::default().message(3, &inner);
        assert_eq!(outer.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let fixed = Message::default().fixed64(1, 1);
        assert_eq!(fixed.as_bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
