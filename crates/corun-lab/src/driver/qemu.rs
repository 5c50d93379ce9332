// SPDX-License-Identifier: GPL-2.0-only
//! The guests' VMM: its command line and its process.

use super::error::{Context, DriverError, Result};
use super::{cgroup, procfs};
use crate::case::{Guest, PvFeatures};
use crate::guest_options;
use corun_lab_proto::AGENT_PORT;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The VMM's program: the build of QEMU with microvm alone.
const PROGRAM: &str = "qemu-system-x86_64-microvm";
/// What guests are booted with: no timer calibration, no speculation fixes, no
/// probing of hardware that a microvm lacks; each saves exits, which are slow here. No
/// statistics of DAMON, as in L1.
const KERNEL_ARGS: &str = "console=ttyS0 quiet panic=-1 nokaslr no_timer_check \
    cryptomgr.notests 8250.nr_uarts=1 mitigations=off random.trust_cpu=on tsc=reliable \
    initcall_blacklist=cmos_init,i8042_init rcupdate.rcu_cpu_stall_suppress=1 nowatchdog \
    damon_stat.enabled=0";
/// How long a VMM may take to end when asked to.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Where things are in L1.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// Folder with `kernel-SERIES/{vmlinux,initrd}`.
    pub(super) guests: PathBuf,
    /// Folder for sockets and serial logs.
    pub(super) run: PathBuf,
    /// Root of the cgroup v2 hierarchy.
    pub(super) cgroups: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            guests: "/guest".into(),
            run: "/run/guest".into(),
            cgroups: "/sys/fs/cgroup".into(),
        }
    }
}

impl Places {
    fn socket(&self, guest: &str) -> PathBuf {
        self.run.join(format!("{guest}.sock"))
    }

    /// What the guest's VMM says.
    pub(super) fn vmm_output(&self, guest: &str) -> PathBuf {
        self.run.join(format!("{guest}.vmm"))
    }

    /// The guest's serial log.
    pub(super) fn log(&self, guest: &str) -> PathBuf {
        self.run.join(format!("{guest}.log"))
    }
}

/// A VMM process; ends with this value.
#[derive(Debug)]
pub(super) struct Vmm {
    child: Child,
}

impl Vmm {
    /// Starts the paused VM that is never run: while one VM exists, KVM's
    /// static keys do not flip with each guest that comes and goes, and each
    /// flip would patch L1's kernel text.
    pub(super) fn start_key_holder(places: &Places) -> Result<Self> {
        let mut args = common_args("key-holder", 16);
        args.extend(["-S", "-machine", "microvm", "-cpu", "qemu64"].map(str::to_owned));
        spawn(&args, &places.log("key-holder"))
    }

    /// Starts `guest` in a cgroup of its own, with the large tools if it needs
    /// them.
    pub(super) fn start(guest: &Guest, tools: bool, places: &Places) -> Result<Self> {
        let initrd = initrd(guest, tools, places)?;
        let vmm = spawn(
            &guest_args(guest, &initrd, places),
            &places.vmm_output(&guest.name),
        )?;
        let group = cgroup::make(&places.cgroups, &guest.name, guest.weight)?;
        cgroup::enter(&group, vmm.pid())?;
        Ok(vmm)
    }

    /// Process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets all vCPUs run on `cpus` alone.
    pub(super) fn pin(&self, cpus: &[usize]) -> Result<()> {
        procfs::pin_vcpus(self.pid(), cpus).doing(|| format!("pin vCPUs of process {}", self.pid()))
    }

    /// Waits for the agent's socket of `guest` and connects to it.
    pub(super) fn connect(&mut self, guest: &str, places: &Places) -> Result<UnixStream> {
        let path = places.socket(guest);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(&path) {
                Ok(stream) => return Ok(stream),
                Err(e) if Instant::now() > deadline => {
                    return Err(DriverError::EmulatorSuspect(format!(
                        "guest {guest}: QEMU does not listen on {}: {e}",
                        path.display()
                    )));
                }
                Err(_) => {}
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(DriverError::Own(format!(
                    "guest {guest}: QEMU ended at once ({status}): {}",
                    tail(&places.vmm_output(guest), 5)
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Vmm {
    fn drop(&mut self) {
        // A pid fits: the kernel's own limit is 2^22.
        let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGTERM);
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(args: &[String], output: &Path) -> Result<Vmm> {
    let doing = || format!("start {PROGRAM}");
    let log = fs::File::create(output).doing(|| format!("make {}", output.display()))?;
    let child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log.try_clone().doing(doing)?)
        .stderr(log)
        .spawn()
        .doing(doing)?;
    Ok(Vmm { child })
}

/// How the VMM with `pid`, a child of this process, ended, if it does within a second:
/// the end of its channel comes before its own. Its status stays for who waits for it.
pub(super) fn ending(pid: u32) -> String {
    let pid = Pid::from_raw(pid.cast_signed());
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match waitid(Id::Pid(pid), flags) {
            Ok(WaitStatus::StillAlive) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            Ok(WaitStatus::StillAlive) => return "runs still".to_owned(),
            // `-no-reboot`: to be reset is to end.
            Ok(WaitStatus::Exited(_, 0)) => {
                return "ended by itself: powered off, or reset".to_owned();
            }
            Ok(WaitStatus::Exited(_, status)) => return format!("exited with {status}"),
            Ok(WaitStatus::Signaled(_, signal, _)) => return format!("died of {signal}"),
            Ok(other) => return format!("is {other:?}"),
            Err(e) => return format!("cannot be asked: {e}"),
        }
    }
}

/// QEMU's own version line, if it runs at all.
pub(super) fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

/// The last `lines` lines of the text file at `path`, or why there are none.
pub(super) fn tail(path: &Path, lines: usize) -> String {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => return format!("({}: {e})", path.display()),
    };
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn common_args(name: &str, memory_mib: u32) -> Vec<String> {
    let mut args: Vec<String> = [
        "-accel",
        "kvm",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
    ]
    .map(str::to_owned)
    .into();
    // Thread names tell vCPUs from the VMM's other threads.
    args.extend(["-name".to_owned(), format!("guest={name},debug-threads=on")]);
    args.extend(["-m".to_owned(), memory_mib.to_string()]);
    args.extend(["-display", "none"].map(str::to_owned));
    args
}

fn guest_args(guest: &Guest, initrd: &Path, places: &Places) -> Vec<String> {
    let kernel = places.guests.join(format!("kernel-{}", guest.kernel));
    let mut args = common_args(&guest.name, guest.memory_mib);
    let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
    option("-machine", "microvm,rtc=on".to_owned());
    // Without arat Linux does not trust the APIC timer in idle states, finds no
    // other one in a microvm, and ticks 250 times a second on every vCPU: no
    // NOHZ, no high-resolution timers, and a load that real guests do not have.
    let cpu = "qemu64,kvm=on,+x2apic,+arat,+tsc-deadline";
    let hyperv = if guest.hyperv {
        format!(",{}", guest_options::HYPERV)
    } else {
        String::new()
    };
    let mut model = format!("{cpu},{}{hyperv}", pv_flags(guest.pv));
    if !guest.cpu_flags.is_empty() {
        model = format!("{model},{}", guest.cpu_flags);
    }
    option("-cpu", model);
    option("-smp", guest.vcpus.to_string());
    option("-kernel", kernel.join("vmlinux").display().to_string());
    option("-initrd", initrd.display().to_string());
    option(
        "-serial",
        format!("file:{}", places.log(&guest.name).display()),
    );
    option("-device", "virtio-serial-device".to_owned());
    let socket = places.socket(&guest.name);
    option(
        "-chardev",
        format!(
            "socket,id=agent,path={},server=on,wait=off",
            socket.display()
        ),
    );
    option(
        "-device",
        format!("virtserialport,chardev=agent,name={AGENT_PORT}"),
    );
    option("-append", format!("{KERNEL_ARGS} {}", guest.kernel_args));
    args
}

/// The initramfs that `guest` boots. The kernel unpacks archives one after the
/// other, so tools are simply appended.
fn initrd(guest: &Guest, tools: bool, places: &Places) -> Result<PathBuf> {
    let small = places
        .guests
        .join(format!("kernel-{}", guest.kernel))
        .join("initrd");
    if !tools {
        return Ok(small);
    }
    let large = places.run.join(format!("initrd-{}-tools", guest.kernel));
    if !large.exists() {
        let doing = || format!("make {}", large.display());
        let mut bytes = fs::read(&small).doing(doing)?;
        bytes.extend(fs::read(places.guests.join("tools.cpio")).doing(doing)?);
        fs::write(&large, bytes).doing(doing)?;
    }
    Ok(large)
}

/// Every feature by name, on or off.
fn pv_flags(pv: PvFeatures) -> String {
    let flag = |(on, name): (bool, &str)| format!("{}kvm-{name}", if on { '+' } else { '-' });
    [
        (pv.steal_time, "steal-time"),
        (pv.sched_yield, "pv-sched-yield"),
        (pv.tlb_flush, "pv-tlb-flush"),
        (pv.ipi, "pv-ipi"),
        (pv.unhalt, "pv-unhalt"),
        (pv.eoi, "pv-eoi"),
        (pv.poll_control, "poll-control"),
    ]
    .map(flag)
    .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        Guest {
            name: "a".to_owned(),
            vcpus: 3,
            weight: 100,
            memory_mib: 192,
            kernel: "7.3".to_owned(),
            pv: PvFeatures {
                sched_yield: true,
                eoi: false,
                ..PvFeatures::default()
            },
            hyperv: true,
            cpu_flags: "+pcid".to_owned(),
            kernel_args: "pti=on".to_owned(),
            module: None,
            module_params: String::new(),
        }
    }

    #[test]
    fn every_pv_feature_is_named() {
        assert_eq!(
            pv_flags(guest().pv),
            "+kvm-steal-time,+kvm-pv-sched-yield,-kvm-pv-tlb-flush,-kvm-pv-ipi,-kvm-pv-unhalt,\
             -kvm-pv-eoi,-kvm-poll-control"
        );
    }

    #[test]
    fn the_guests_settings_reach_the_command_line() {
        let args = guest_args(&guest(), Path::new("/x/initrd"), &Places::default()).join(" ");
        for part in [
            "-smp 3 ",
            "-m 192 ",
            "-kernel /guest/kernel-7.3/vmlinux ",
            "-initrd /x/initrd ",
            "guest=a,debug-threads=on",
            ",hv-tlbflush=on,",
            ",+pcid ",
            " damon_stat.enabled=0 pti=on",
            "path=/run/guest/a.sock,",
            "name=corun.agent",
        ] {
            assert!(args.contains(part), "{part} is not in: {args}");
        }
    }

    #[test]
    fn the_tail_is_the_end() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("log");
        fs::write(&file, "1\n2\n3\n").expect("write");
        assert_eq!(tail(&file, 2), "2\n3");
        assert!(tail(&dir.path().join("none"), 2).contains("none"));
    }
}
