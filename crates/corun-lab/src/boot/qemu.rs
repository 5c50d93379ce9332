// SPDX-License-Identifier: GPL-2.0-only
//! The emulated host's machine as QEMU options. Measured: other machine types hang
//! with nested guests.

use super::Accel;
use crate::image::{Image, Loader};
use corun_lab_proto::{COMMANDS_PORT, CONTROL_PORT};
use std::path::Path;
use std::process::Command;

/// L1's kernel command line. Only one serial port is probed: each costs time
/// under emulation. `panic=-1` with QEMU's `-no-reboot` ends a dead kernel at
/// once. DAMON's statistics, which Debian's kernels gather, look at all memory every
/// 5 ms: with three guests that took 10 to 12 % of an emulated host.
const APPEND: &str = "console=ttyS0 panic=-1 quiet mitigations=off nokaslr cryptomgr.notests \
                      no_timer_check random.trust_cpu=on tsc=reliable 8250.nr_uarts=1 \
                      damon_stat.enabled=0";

/// Where L1's serial console goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Console {
    /// To the log alone.
    #[default]
    Log,
    /// To this process's terminal as well (Ctrl-A X ends QEMU).
    Terminal,
}

/// How to boot L1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootSpec {
    /// CPUs of the emulated host.
    pub pcpus: u32,
    /// Memory of the emulated host. MiB; its root file system lives there too.
    pub memory_mib: u32,
    /// What runs L1's instructions.
    pub accel: Accel,
    /// Added to L1's kernel command line.
    pub append: String,
    /// Where the console goes.
    pub console: Console,
}

impl Default for BootSpec {
    fn default() -> Self {
        Self {
            pcpus: 2,
            memory_mib: 2048,
            accel: Accel::default(),
            append: String::new(),
            console: Console::default(),
        }
    }
}

impl BootSpec {
    /// The command that runs L1. `control_fd` is the inherited end of the
    /// control channel's socket.
    pub(super) fn command(&self, image: &Image, files: &Files<'_>, control_fd: i32) -> Command {
        let tree = &image.programs;
        let mut cmd = Loader::of(tree).command(&image.emulator);
        for firmware in ["usr/share/qemu", "usr/share/seabios"] {
            cmd.arg("-L").arg(tree.join(firmware));
        }
        let append = [APPEND, self.accel.append(), &self.append];
        cmd.args(self.accel.args())
            .args(["-machine", "pc", "-nodefaults", "-no-user-config"])
            .args(["-display", "none", "-no-reboot"])
            .args(["-smp", &self.pcpus.to_string()])
            .args(["-m", &self.memory_mib.to_string()])
            .arg("-kernel")
            .arg(&image.kernel)
            .arg("-initrd")
            .arg(files.initrd)
            .args(["-append", &append.join(" ")])
            .args(["-chardev", &self.console_chardev(files.console)])
            .args(["-serial", "chardev:console"])
            .args(["-device", "virtio-serial-pci"])
            .args(["-chardev", &format!("socket,id=control,fd={control_fd}")])
            .arg("-device")
            .arg(format!(
                "virtserialport,chardev=control,name={CONTROL_PORT}"
            ))
            .args(["-chardev", &file_chardev("commands", files.commands)])
            .arg("-device")
            .arg(format!(
                "virtserialport,chardev=commands,name={COMMANDS_PORT}"
            ));
        if self.console == Console::Terminal {
            cmd.args(["-mon", "chardev=console,mode=readline"]);
        }
        cmd
    }

    fn console_chardev(&self, log: &Path) -> String {
        match self.console {
            Console::Log => file_chardev("console", log),
            // signal=off: Ctrl-C goes to the shell in L1.
            Console::Terminal => {
                format!("stdio,id=console,mux=on,signal=off,logfile={}", quoted(log))
            }
        }
    }
}

fn file_chardev(id: &str, path: &Path) -> String {
    format!("file,id={id},path={}", quoted(path))
}

/// QEMU reads a doubled comma as one.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Files of one boot.
pub(super) struct Files<'a> {
    pub(super) initrd: &'a Path,
    pub(super) console: &'a Path,
    pub(super) commands: &'a Path,
}
