// SPDX-License-Identifier: GPL-2.0-only
//! Recordings as files: JSON lines, compressed by zstd or plain.

use crate::{Event, Header, ReadError, Reader, Writer};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How zstd's frames begin.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// zstd's fastest ordinary level: a recorder must keep up.
const LEVEL: i32 = 1;

/// A recording that is read.
pub type Recording = Reader<Box<dyn BufRead>>;

/// Opens a recording, compressed or not: the file's first bytes tell.
pub fn open(path: &Path) -> Result<Recording, ReadError> {
    Reader::new(open_text(path)?)
}

/// The text of a file that may be a recording, compressed or not.
pub fn open_text(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(if file.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?))
    } else {
        Box::new(file)
    })
}

/// Compresses what is written to it into `out`: one frame, ended by `finish`.
///
/// Frames one after the other are one file to every reader of zstd.
fn compressed<W: Write>(out: W) -> std::io::Result<zstd::Encoder<'static, W>> {
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

/// A recording whose header is known only at its end: drops, names of VMs.
///
/// Events go to a file beside `path`. At the end the header is put before them, and
/// the recording gets its name: `path` is never half a recording, and one that was
/// there before stays until then.
pub struct Spool {
    path: PathBuf,
    part: PathBuf,
    writer: Writer<BufWriter<zstd::Encoder<'static, File>>>,
    events: u64,
}

impl Spool {
    /// Begins a recording that will be called `path`.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let part = beside(path, ".events");
        let body = BufWriter::new(compressed(File::create(&part)?)?);
        Ok(Self {
            path: path.to_owned(),
            part,
            writer: Writer::without_header(body),
            events: 0,
        })
    }

    /// Adds an event.
    pub fn put(&mut self, event: &Event) -> std::io::Result<()> {
        self.events += 1;
        self.writer.put(event)
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Ends the recording: writes it whole. Returns its size in bytes.
    pub fn finish(self, header: &Header) -> std::io::Result<u64> {
        let encoder = self.writer.finish()?.into_inner();
        encoder
            .map_err(std::io::IntoInnerError::into_error)?
            .finish()?;
        let whole = beside(&self.path, ".part");
        let first = Writer::new(compressed(File::create(&whole)?)?, header)?;
        let mut file = first.finish()?.finish()?;
        std::io::copy(&mut File::open(&self.part)?, &mut file)?;
        file.sync_all()?;
        std::fs::rename(&whole, &self.path)?;
        std::fs::remove_file(&self.part)?;
        Ok(std::fs::metadata(&self.path)?.len())
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Vm};

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
    fn a_recording_appears_when_it_is_whole() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("corun.trace");
        std::fs::write(&path, "of yesterday").expect("written");
        let mut spool = Spool::create(&path).expect("created");
        for at_ns in 0..100 {
            spool.put(&event(at_ns)).expect("written");
        }
        let before = std::fs::read_to_string(&path).expect("still there");
        assert_eq!((before.as_str(), spool.events()), ("of yesterday", 100));
        let mut header = Header::new("host", "t", 2, vec![Vm::new("late", 1)]);
        header.drops = vec![1, 2];
        spool.finish(&header).expect("ended");
        let reader = open(&path).expect("opens");
        assert_eq!(
            (reader.header.dropped(), reader.header.vms[0].name.as_str()),
            (3, "late")
        );
        assert_eq!(reader.map_while(Result::ok).count(), 100);
        let files = std::fs::read_dir(directory.path()).expect("listed").count();
        assert_eq!(files, 1, "something is left over");
    }
}
