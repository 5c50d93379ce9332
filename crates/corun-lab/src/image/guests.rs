// SPDX-License-Identifier: GPL-2.0-only
//! What guests boot: one kernel and initramfs per guest kernel, with the agent
//! as process 1, and an archive of large tools to append where they are needed.

use super::ImageError;
use super::cpio::Archive;
use super::files::{self, Loader};
use super::root;
use crate::case::TOOLS;
use std::path::{Path, PathBuf};

/// Where root is at home in a guest.
const HOME: &str = "/";

/// The guest initramfs: agent, busybox, hackbench.
pub(super) fn initramfs(
    loader: &Loader,
    agent: &Path,
    modules: &Path,
) -> Result<Archive, ImageError> {
    let mut archive = root::with_busybox(loader, HOME)?;
    archive.dir("mod", 0o755).file(
        "mod/virtio_mmio.ko",
        0o644,
        files::module(modules, "virtio_mmio")?,
    );
    loader.add_program(&mut archive, agent, "init")?;
    loader.add_program(
        &mut archive,
        &loader.find("usr/bin/hackbench")?,
        "usr/bin/hackbench",
    )?;
    Ok(archive)
}

/// Adds our own kernel modules, as `/mod/corun/NAME.ko`: the agent loads all of
/// `/mod`, but of these only those that a case asks for.
pub(super) fn add_modules(archive: &mut Archive, modules: &[PathBuf]) -> Result<(), ImageError> {
    archive.dir("mod/corun", 0o755);
    for module in modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("mod/corun/{name}"), 0o644, files::read(module)?);
    }
    Ok(())
}

/// The large tools with their libraries, as an archive to append to a guest's
/// initramfs.
pub(super) fn tools(loader: &Loader) -> Result<Archive, ImageError> {
    let mut archive = Archive::new();
    for tool in TOOLS {
        let path = format!("usr/bin/{tool}");
        loader.add_program(&mut archive, &loader.find(&path)?, &path)?;
    }
    Ok(archive)
}
