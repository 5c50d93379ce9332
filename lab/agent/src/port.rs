// SPDX-License-Identifier: GPL-2.0-only
//! The virtio-serial port to the driver.

use corun_lab_proto::AGENT_PORT;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PORTS: &str = "/sys/class/virtio-ports";

/// Opens the port named [`AGENT_PORT`], waiting up to `patience` for it: ports get
/// their names by messages that arrive some time after the device.
pub(crate) fn open(patience: Duration) -> io::Result<File> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(device) = find(Path::new(PORTS)) {
            match File::options().read(true).write(true).open(&device) {
                Ok(file) => return Ok(file),
                Err(e) if Instant::now() >= deadline => return Err(e),
                Err(_) => {}
            }
        } else if Instant::now() >= deadline {
            let problem = format!("no virtio-serial port is named {AGENT_PORT}");
            return Err(io::Error::new(io::ErrorKind::NotFound, problem));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn find(ports: &Path) -> Option<PathBuf> {
    fs::read_dir(ports).ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        (name.trim() == AGENT_PORT).then(|| Path::new("/dev").join(entry.file_name()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_port_is_found_by_name() {
        let scratch = Scratch::new().expect("a folder");
        assert_eq!(find(scratch.path()), None);
        for (port, name) in [("vport0p1", "other\n"), ("vport0p2", "corun.agent\n")] {
            fs::create_dir(scratch.join(port)).expect("a folder");
            fs::write(scratch.join(port).join("name"), name).expect("a file");
        }
        assert_eq!(find(scratch.path()), Some(PathBuf::from("/dev/vport0p2")));
    }
}
