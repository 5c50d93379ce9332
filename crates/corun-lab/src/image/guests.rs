// SPDX-License-Identifier: GPL-2.0-only
//! What guests boot: one kernel and initramfs per guest kernel, with the agent
//! as process 1, and an archive of large tools to append where they are needed.

use super::ImageError;
use super::cpio::Archive;
use super::files::{self, Loader};
use crate::case::TOOLS;
use std::path::{Path, PathBuf};

/// Contents of a guest's `/etc`: enough for programs that look up a user or a
/// host name.
const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\n";
const GROUP: &str = "root:x:0:\n";
const HOSTS: &str = "127.0.0.1 localhost\n";

/// The guest initramfs: agent, busybox, hackbench.
pub(super) fn initramfs(
    loader: &Loader,
    agent: &Path,
    modules: &Path,
) -> Result<Archive, ImageError> {
    let mut archive = Archive::new();
    for dir in ["dev", "proc", "sys", "run", "mod"] {
        archive.dir(dir, 0o755);
    }
    archive
        .dir("tmp", 0o1777)
        .char_device("dev/console", 5, 1)
        .link("lib", "usr/lib")
        .link("sbin", "usr/bin")
        .link("bin", "usr/bin")
        .file("etc/passwd", 0o644, PASSWD.into())
        .file("etc/group", 0o644, GROUP.into())
        .file("etc/hosts", 0o644, HOSTS.into())
        .file(
            "mod/virtio_mmio.ko",
            0o644,
            files::module(modules, "virtio_mmio")?,
        );
    add_busybox(&mut archive, loader)?;
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

/// busybox and the names that scripts of the lab and its users call. Its init
/// could install all of them, but that is 400 system calls under emulation.
pub(super) fn add_busybox(archive: &mut Archive, loader: &Loader) -> Result<(), ImageError> {
    let busybox = files::read(&loader.find("usr/bin/busybox")?)?;
    archive.file("usr/bin/busybox", 0o755, busybox);
    for applet in APPLETS.split_whitespace() {
        archive.link(&format!("usr/bin/{applet}"), "busybox");
    }
    Ok(())
}

const APPLETS: &str = "[ ash awk basename cat chmod clear cp cttyhack cut date dd df dirname dmesg \
    du echo env expr false find free grep gunzip gzip head hexdump hostname id ifconfig insmod ip \
    kill killall less ln ls lsmod md5sum mkdir mkfifo mknod mktemp modprobe more mount mv nproc od \
    pidof ping poweroff printf ps pwd readlink realpath renice reset rm rmdir rmmod sed seq setsid \
    sh sha256sum sleep sort stat stty sync sysctl tail tar taskset tee test time timeout top touch \
    tr true tty umount uname uniq uptime usleep vi watch wc which xargs yes zcat";
