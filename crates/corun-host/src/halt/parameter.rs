// SPDX-License-Identifier: GPL-2.0-only
//! KVM's module parameter.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The parameter, as of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Its value. Nanoseconds.
    pub(super) value_ns: u64,
    /// The file's inode. sysfs numbers files anew, so another number is another
    /// load of the module, whose value is nobody's but its own.
    pub(super) module: u64,
}

/// Looks at it; `None` while kvm is not loaded.
pub(super) fn read(path: &Path) -> Result<Option<Parameter>> {
    match read_present(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        // What an open file of an unloaded module answers.
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        other => other.map(Some),
    }
}

fn read_present(path: &Path) -> Result<Parameter> {
    let module = std::fs::metadata(path)?.ino();
    let text = std::fs::read_to_string(path)?;
    let value_ns = text
        .trim()
        .parse()
        .map_err(|_| Error::new(ErrorKind::InvalidData, format!("not a number: {text:?}")))?;
    Ok(Parameter { value_ns, module })
}

/// Sets it; never creates the file.
pub(super) fn write(path: &Path, value_ns: u64) -> Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?;
    file.write_all(format!("{value_ns}\n").as_bytes())
}
