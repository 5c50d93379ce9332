// SPDX-License-Identifier: GPL-2.0-only
//! Recordings as JSON lines: a header, then an event a line.

use crate::Event;
use crate::header::{Header, VERSION, VERSION_OLDEST};
use std::io::{BufRead, Write};

/// Writes a recording.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a recording. Wants a buffered `out`.
    pub fn new(mut out: W, header: &Header) -> std::io::Result<Self> {
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        Ok(Self { out })
    }

    /// Adds an event.
    pub fn put(&mut self, event: &Event) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")
    }

    /// Goes on with a recording whose header is written elsewhere.
    pub fn without_header(out: W) -> Self {
        Self { out }
    }

    /// Ends the recording.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A line.
    #[error("line {line}: {error}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// Another version.
    #[error(
        "version {0}: expected {VERSION_OLDEST} to {VERSION}; it was recorded by another corun"
    )]
    Version(u32),
    /// Nothing in it.
    #[error("empty: expected a header line")]
    Empty,
}

/// Reads a recording.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: usize,
    text: String,
    /// Its header.
    pub header: Header,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut text = String::new();
        if input.read_line(&mut text)? == 0 {
            return Err(ReadError::Empty);
        }
        let header: Header =
            serde_json::from_str(&text).map_err(|error| ReadError::Line { line: 1, error })?;
        if !(VERSION_OLDEST..=VERSION).contains(&header.corun_events) {
            return Err(ReadError::Version(header.corun_events));
        }
        Ok(Self {
            input,
            line: 1,
            text,
            header,
        })
    }

    fn read(&mut self) -> Result<Option<Event>, ReadError> {
        self.text.clear();
        if self.input.read_line(&mut self.text)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        let line = self.line;
        serde_json::from_str(&self.text)
            .map(Some)
            .map_err(|error| ReadError::Line { line, error })
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NO_PCPU, Vm};

    fn recording() -> Vec<u8> {
        let vm = Vm::new("a", 2);
        let header = Header::new("sim", "test", 4, vec![vm]);
        let mut writer = Writer::new(Vec::new(), &header).expect("header");
        for vcpu in 0..2 {
            let event = Event {
                at_ns: 5,
                kind: Kind::Wake,
                pcpu: NO_PCPU,
                vm: 0,
                vcpu,
                arg: 7,
                ip: 0,
            };
            writer.put(&event).expect("event");
        }
        writer.finish().expect("end")
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = recording();
        let reader = Reader::new(bytes.as_slice()).expect("reads");
        assert_eq!(reader.header.vms[0].vcpus, 2);
        let events: Result<Vec<Event>, _> = reader.collect();
        let events = events.expect("reads");
        assert_eq!(events.len(), 2);
        assert_eq!((events[1].vcpu, events[1].kind), (1, Kind::Wake));
    }

    #[test]
    fn recordings_of_the_first_version_are_read() {
        let old = concat!(
            r#"{"corun_events":1,"source":"sim","title":"t","pcpus":1,"vms":[{"name":"a","vcpus":1}]}"#,
            "\n",
            r#"{"at_ns":1,"kind":"wake","pcpu":0,"vm":0,"vcpu":0,"arg":0}"#,
            "\n",
        );
        let mut reader = Reader::new(old.as_bytes()).expect("header");
        assert!(reader.header.exits.is_empty() && reader.header.vms[0].pid == 0);
        assert!(reader.next().is_some_and(|e| e.is_ok_and(|e| e.ip == 0)));
    }

    #[test]
    fn wrong_files_are_told_apart() {
        let error = |bytes: &[u8]| Reader::new(bytes).expect_err("wrong").to_string();
        assert!(error(b"").contains("expected a header"));
        assert!(error(b"{}\n").contains("line 1"));
        let text = String::from_utf8(recording()).expect("text");
        let now = format!("\"corun_events\":{VERSION}");
        let old = text.replace(&now, "\"corun_events\":0");
        assert!(error(old.as_bytes()).contains("version 0"));
        let torn = &text.as_bytes()[..text.len() - 5];
        let mut reader = Reader::new(torn).expect("header");
        assert!(reader.next().is_some_and(|e| e.is_ok()));
        let last = reader.next().and_then(Result::err).map(|e| e.to_string());
        assert!(last.is_some_and(|e| e.contains("line 3")));
    }
}
