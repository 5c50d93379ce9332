// SPDX-License-Identifier: GPL-2.0-only
//! The emulated host's own layers: its programs, `corun`, and what is compared
//! with it.

use super::ImageError;
use super::cpio::Archive;
use super::files::{self, Loader};
use super::root;
use std::path::Path;

/// L1's process 1.
pub(super) const INIT: &str = include_str!("../../../../lab/l1/init");

/// The small QEMU build: one machine type, few libraries.
const QEMU: &str = "usr/bin/qemu-system-x86_64-microvm";
/// Firmware of the microvm machine.
const FIRMWARE: [&str; 3] = ["pvh.bin", "linuxboot_dma.bin", "qboot.rom"];
const BIOS: &str = "bios-microvm.bin";

const HOME: &str = "/root";
const PROFILE: &str = "export PATH=/usr/bin HOME=/root TERM=${TERM:-linux} PS1='host# '\n\
                       alias ll='ls -l'\n";

/// L1's root: init, busybox, QEMU, and the modules of its kernel.
pub(super) fn base(loader: &Loader, modules: &Path) -> Result<Archive, ImageError> {
    let mut archive = root::with_busybox(loader, HOME)?;
    for dir in ["mnt", "var", "root"] {
        archive.dir(dir, 0o755);
    }
    archive
        .file("init", 0o755, INIT.into())
        .file("etc/profile", 0o644, PROFILE.into());
    for name in ["irqbypass", "kvm", "kvm-amd", "kvm-intel"] {
        let to = format!("mod/{name}.ko");
        archive.file(&to, 0o644, files::module(modules, name)?);
    }
    // Where libbpf looks it up: other schedulers' BPF programs ask what the kernel
    // was built with.
    if let Some(release) = modules.file_name() {
        let path = format!("boot/config-{}", release.to_string_lossy());
        archive.file(&path, 0o644, files::read(&modules.join("config"))?);
    }
    loader.add_program(&mut archive, &loader.find(QEMU)?, QEMU)?;
    for name in FIRMWARE {
        let path = format!("usr/share/qemu/{name}");
        archive.file(&path, 0o644, files::read(&loader.find(&path)?)?);
    }
    let bios = loader.find(&format!("usr/share/seabios/{BIOS}"))?;
    archive.file(
        &format!("usr/share/qemu/{BIOS}"),
        0o644,
        files::read(&bios)?,
    );
    Ok(archive)
}

/// A program of the machine's, `corun` for one, as `/usr/bin/NAME`, and its
/// libraries.
pub(super) fn program(loader: &Loader, binary: &Path, name: &str) -> Result<Archive, ImageError> {
    let mut archive = Archive::new();
    loader.add_program(&mut archive, binary, &format!("usr/bin/{name}"))?;
    Ok(archive)
}
