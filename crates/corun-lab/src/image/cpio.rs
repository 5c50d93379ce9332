// SPDX-License-Identifier: GPL-2.0-only
//! Writes cpio archives of the kernel's initramfs format ("newc"): the same
//! files always give the same bytes.

use super::ImageError;
use std::collections::BTreeMap;
use std::io::Write;

const DIR: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHAR: u32 = 0o020_000;

/// The kernel skips zeros between archives; QEMU's loaders like whole sectors.
const ALIGN: usize = 512;

#[derive(Debug, Clone)]
enum Node {
    Dir { mode: u32 },
    File { mode: u32, data: Vec<u8> },
    Link { target: String },
    Char { major: u32, minor: u32 },
}

/// An archive under construction. Paths have no leading slash; parent folders
/// are made as needed. A later entry replaces an earlier one of the same path.
#[derive(Debug, Clone, Default)]
pub(super) struct Archive {
    nodes: BTreeMap<String, Node>,
}

impl Archive {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// An empty folder.
    pub(super) fn dir(&mut self, path: &str, mode: u32) -> &mut Self {
        self.add(path, Node::Dir { mode })
    }

    /// A file.
    pub(super) fn file(&mut self, path: &str, mode: u32, data: Vec<u8>) -> &mut Self {
        self.add(path, Node::File { mode, data })
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) -> &mut Self {
        let target = target.to_owned();
        self.add(path, Node::Link { target })
    }

    /// A character device.
    pub(super) fn char_device(&mut self, path: &str, major: u32, minor: u32) -> &mut Self {
        self.add(path, Node::Char { major, minor })
    }

    /// Whether `path` is in the archive.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    fn add(&mut self, path: &str, node: Node) -> &mut Self {
        let mut end = 0;
        while let Some(slash) = path[end..].find('/') {
            let parent = path[..end + slash].to_owned();
            self.nodes
                .entry(parent)
                .or_insert(Node::Dir { mode: 0o755 });
            end += slash + 1;
        }
        self.nodes.insert(path.to_owned(), node);
        self
    }

    /// The archive as one piece, for an archive inside another.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, ImageError> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the archive. The order is by path, so parents come first.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<(), ImageError> {
        let mut w = Counted { out, written: 0 };
        for (ino, (path, node)) in (1..).zip(&self.nodes) {
            let (mode, data, dev) = match node {
                Node::Dir { mode } => (DIR | mode, &[][..], (0, 0)),
                Node::File { mode, data } => (FILE | mode, &data[..], (0, 0)),
                Node::Link { target } => (LINK | 0o777, target.as_bytes(), (0, 0)),
                Node::Char { major, minor } => (CHAR | 0o600, &[][..], (*major, *minor)),
            };
            w.entry(path, ino, mode, data, dev)?;
        }
        w.entry("TRAILER!!!", 0, 0, &[], (0, 0))?;
        w.pad(ALIGN)
            .map_err(|e| ImageError::Io("writing a layer".into(), e))
    }
}

struct Counted<'a, W> {
    out: &'a mut W,
    written: usize,
}

impl<W: Write> Counted<'_, W> {
    fn entry(
        &mut self,
        path: &str,
        ino: u32,
        mode: u32,
        data: &[u8],
        dev: (u32, u32),
    ) -> Result<(), ImageError> {
        let size = u32::try_from(data.len()).map_err(|_| ImageError::Cpio {
            path: path.to_owned(),
            why: "larger than 4 GiB",
        })?;
        // The kernel's PATH_MAX.
        if path.len() >= 4096 {
            let path = path.to_owned();
            return Err(ImageError::Cpio {
                path,
                why: "name too long",
            });
        }
        let links = if mode & 0o170_000 == DIR { 2 } else { 1 };
        let name_size = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        // inode, mode, uid, gid, links, mtime, size, device of the file (2),
        // device of the node (2), length of the name, checksum.
        let fields = [
            ino, mode, 0, 0, links, 0, size, 0, 0, dev.0, dev.1, name_size, 0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(header, "{field:08x}");
        }
        self.bytes(header.as_bytes())
            .and_then(|()| self.bytes(path.as_bytes()))
            .and_then(|()| self.bytes(&[0]))
            .and_then(|()| self.pad(4))
            .and_then(|()| self.bytes(data))
            .and_then(|()| self.pad(4))
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::StorageFull => ImageError::DiskFull,
                _ => ImageError::Io("writing a layer".into(), e),
            })
    }

    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len();
        Ok(())
    }

    fn pad(&mut self, align: usize) -> std::io::Result<()> {
        let zeros = self.written.next_multiple_of(align) - self.written;
        self.bytes(&[0; ALIGN][..zeros])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Entry = (String, u32, Vec<u8>);

    /// An independent reader of the format, as the kernel would walk it.
    fn read(bytes: &[u8]) -> Vec<Entry> {
        let mut at = 0;
        let mut found = Vec::new();
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |n: usize| {
                let hex = &bytes[at + 6 + n * 8..at + 14 + n * 8];
                u32::from_str_radix(std::str::from_utf8(hex).expect("ascii"), 16).expect("hex")
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let path = String::from_utf8_lossy(&bytes[at + 110..at + 109 + name]).into_owned();
            let data = (at + 110 + name).next_multiple_of(4);
            if path == "TRAILER!!!" {
                return found;
            }
            found.push((path, mode, bytes[data..data + size].to_vec()));
            at = (data + size).next_multiple_of(4);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut archive = Archive::new();
        archive
            .file("usr/bin/x", 0o755, b"hello".to_vec())
            .link("lib", "usr/lib")
            .dir("tmp", 0o1777)
            .char_device("dev/console", 5, 1);
        let bytes = archive.bytes().expect("writes");
        assert_eq!(bytes.len() % ALIGN, 0);
        let paths: Vec<_> = read(&bytes).into_iter().map(|e| e.0).collect();
        assert_eq!(
            paths,
            [
                "dev",
                "dev/console",
                "lib",
                "tmp",
                "usr",
                "usr/bin",
                "usr/bin/x"
            ]
        );
        assert_eq!(
            read(&bytes)[6],
            ("usr/bin/x".into(), 0o100_755, b"hello".to_vec())
        );
        assert_eq!(read(&bytes)[2].2, b"usr/lib");
        assert_eq!(read(&bytes)[3].1, 0o041_777);
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let (mut a, mut b) = (Archive::new(), Archive::new());
        a.file("a/x", 0o644, vec![1]).file("b", 0o644, vec![2]);
        b.file("b", 0o644, vec![2]).file("a/x", 0o644, vec![1]);
        assert_eq!(a.bytes().expect("writes"), b.bytes().expect("writes"));
    }
}
