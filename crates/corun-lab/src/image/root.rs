// SPDX-License-Identifier: GPL-2.0-only
//! What the root of the emulated host and that of its guests have in common.

use super::ImageError;
use super::cpio::Archive;
use super::files::{self, Loader};

/// Contents of `/etc`: enough for programs that look up a user or a host name.
const GROUP: &str = "root:x:0:\n";
const HOSTS: &str = "127.0.0.1 localhost\n";

/// A root with busybox, whose user root is at home in `home`.
pub(super) fn with_busybox(loader: &Loader, home: &str) -> Result<Archive, ImageError> {
    let mut archive = Archive::new();
    for dir in ["dev", "proc", "sys", "run"] {
        archive.dir(dir, 0o755);
    }
    let passwd = format!("root:x:0:0:root:{home}:/bin/sh\n");
    archive
        .dir("tmp", 0o1777)
        .char_device("dev/console", 5, 1)
        .link("lib", "usr/lib")
        .link("sbin", "usr/bin")
        .link("bin", "usr/bin")
        .file("etc/passwd", 0o644, passwd.into())
        .file("etc/group", 0o644, GROUP.into())
        .file("etc/hosts", 0o644, HOSTS.into());
    add_busybox(&mut archive, loader)?;
    Ok(archive)
}

/// busybox and the names that scripts of the lab and its users call. Its init
/// could install all of them, but that is 400 system calls under emulation.
fn add_busybox(archive: &mut Archive, loader: &Loader) -> Result<(), ImageError> {
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
