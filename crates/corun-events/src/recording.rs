// SPDX-License-Identifier: GPL-2.0-only
//! Recordings as files: JSON lines, compressed by zstd or plain.

use crate::{Header, ReadError, Reader, Writer};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

/// How zstd's frames begin.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// zstd's fastest ordinary level: a recorder must keep up.
const LEVEL: i32 = 1;

/// A recording that is read.
pub type Recording = Reader<Box<dyn BufRead>>;

/// Opens a recording, compressed or not: the file's first bytes tell.
pub fn open(path: &Path) -> Result<Recording, ReadError> {
    let mut file = BufReader::new(File::open(path)?);
    let input: Box<dyn BufRead> = if file.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?))
    } else {
        Box::new(file)
    };
    Reader::new(input)
}

/// Compresses what is written to it into `out`: one frame, ended by `finish`.
///
/// Frames one after the other are one file to every reader of zstd.
pub fn compressed<W: Write>(out: W) -> std::io::Result<zstd::Encoder<'static, W>> {
    zstd::Encoder::new(out, LEVEL)
}

/// A file for a recording: compressed when its name ends in `.zst`.
pub enum Output {
    /// As it is.
    Plain(BufWriter<File>),
    /// Compressed.
    Compressed(BufWriter<zstd::Encoder<'static, File>>),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Compressed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Compressed(out) => out.flush(),
        }
    }
}

/// Creates a recording at `path`.
pub fn create(path: &Path, header: &Header) -> std::io::Result<Writer<Output>> {
    let file = File::create(path)?;
    let zst = path.extension().is_some_and(|e| e == "zst");
    let out = if zst {
        Output::Compressed(BufWriter::new(compressed(file)?))
    } else {
        Output::Plain(BufWriter::new(file))
    };
    Writer::new(out, header)
}

/// Ends a recording that [`create`] began.
pub fn finish(writer: Writer<Output>) -> std::io::Result<()> {
    match writer.finish()? {
        Output::Plain(_) => Ok(()),
        Output::Compressed(out) => {
            let encoder = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)?;
            encoder.finish().map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Kind, Vm};

    fn event(at_ns: u64) -> Event {
        Event {
            at_ns,
            kind: Kind::Exit,
            pcpu: 1,
            vm: 0,
            vcpu: 0,
            arg: 2,
            ip: 0xffff_ffff_8100_0000,
        }
    }

    #[test]
    fn compressed_and_plain_files_are_told_apart() {
        let directory = tempfile::tempdir().expect("directory");
        let header = Header::new("host", "t", 2, vec![Vm::new("a", 1)]);
        for name in ["a.jsonl", "a.jsonl.zst"] {
            let path = directory.path().join(name);
            let mut writer = create(&path, &header).expect("created");
            for at_ns in 0..1000 {
                writer.put(&event(at_ns)).expect("written");
            }
            finish(writer).expect("ended");
            let reader = open(&path).expect("opens");
            assert_eq!(reader.header, header);
            let events: Result<Vec<Event>, _> = reader.collect();
            assert_eq!(events.expect("reads").len(), 1000, "{name}");
        }
        let size = |name| {
            std::fs::metadata(directory.path().join(name))
                .expect("there")
                .len()
        };
        assert!(size("a.jsonl.zst") * 10 < size("a.jsonl"));
    }

    #[test]
    fn a_header_and_events_in_frames_of_their_own_are_one_recording() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("two");
        let header = Header::new("host", "t", 2, vec![]);
        let mut events = Writer::without_header(compressed(Vec::new()).expect("encoder"));
        events.put(&event(5)).expect("written");
        let events = events
            .finish()
            .and_then(zstd::Encoder::finish)
            .expect("ended");
        let first = Writer::new(compressed(Vec::new()).expect("encoder"), &header);
        let first = first
            .and_then(Writer::finish)
            .and_then(zstd::Encoder::finish);
        let whole = [first.expect("ended"), events].concat();
        std::fs::write(&path, whole).expect("written");
        assert_eq!(open(&path).expect("opens").count(), 1);
    }
}
