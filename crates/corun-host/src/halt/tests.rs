// SPDX-License-Identifier: GPL-2.0-only
//! Steering in a folder that stands for the host.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A host of two pCPUs on which this process and its children are known.
pub(crate) struct FakeHost {
    root: TempDir,
    pub(crate) places: Places,
    base: Instant,
    windows: u32,
    waiting_ns: u64,
    vain_ns: u64,
    wakeups: u64,
}

impl FakeHost {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let places = at(root.path());
        fs::create_dir_all(places.parameter.parent().unwrap()).unwrap();
        fs::create_dir_all(&places.counters).unwrap();
        fs::create_dir_all(places.online.parent().unwrap()).unwrap();
        fs::write(&places.online, "0-1\n").unwrap();
        let host = Self {
            root,
            places,
            base: Instant::now(),
            windows: 0,
            waiting_ns: 0,
            vain_ns: 0,
            wakeups: 0,
        };
        host.set(200_000);
        host.polls(0, 0, 0, 0);
        host
    }

    fn start(&self) -> HaltSteering {
        HaltSteering::start(true, HaltTunables::default(), self.places.clone())
    }

    fn set(&self, value_ns: u64) {
        fs::write(&self.places.parameter, format!("{value_ns}\n")).unwrap();
    }

    pub(crate) fn value_ns(&self) -> u64 {
        let text = fs::read_to_string(&self.places.parameter).unwrap();
        text.trim().parse().unwrap()
    }

    /// Where the record is, nothing can be read.
    pub(crate) fn block_record(&self) {
        fs::create_dir_all(&self.places.left).unwrap();
    }

    fn polls(&self, polls: u64, hits: u64, hit_ns: u64, vain_ns: u64) {
        for (name, value) in [
            ("halt_attempted_poll", polls),
            ("halt_successful_poll", hits),
            ("halt_poll_success_ns", hit_ns),
            ("halt_poll_fail_ns", vain_ns),
            ("halt_wakeup", self.wakeups),
        ] {
            fs::write(self.places.counters.join(name), format!("{value}\n")).unwrap();
        }
    }

    /// vCPUs were woken so often in the window to come, and nobody polled.
    fn sleeps(&mut self, wakeups: u64) {
        self.wakeups += wakeups;
        self.polls(1000, 0, 0, self.vain_ns);
    }

    /// 2 % of a window is polled in vain.
    fn polls_in_vain(&mut self) {
        self.vain_ns += 4_000_000;
        self.polls(1000, 0, 0, self.vain_ns);
    }

    /// One window in which tasks waited for `waiting_ns`.
    fn window(&mut self, steering: &mut HaltSteering, waiting_ns: u64) -> Vec<Note> {
        self.windows += 1;
        self.waiting_ns += waiting_ns;
        steering.step(self.base + WINDOW * self.windows, Some(self.waiting_ns))
    }

    /// The first sample, and a window in which others wanted the CPU and polls failed.
    fn contended(&mut self, steering: &mut HaltSteering) {
        self.window(steering, 0);
        self.polls_in_vain();
        self.window(steering, 50_000_000);
        assert_eq!(self.value_ns(), 0);
    }

    fn calm(&mut self, steering: &mut HaltSteering, windows: u32) -> Vec<Note> {
        (0..windows)
            .flat_map(|_| self.window(steering, 0))
            .collect()
    }

    /// kvm is unloaded and loaded: a new file in the place of the old one.
    fn reload(&self, value_ns: u64) {
        let new = self.root.path().join("new");
        fs::write(&new, format!("{value_ns}\n")).unwrap();
        fs::rename(&new, &self.places.parameter).unwrap();
    }
}

/// Processes are the real ones.
fn at(root: &Path) -> Places {
    Places {
        proc: PathBuf::from("/proc"),
        ..Places::below(root)
    }
}

#[test]
fn off_while_others_want_the_cpu_in_vain_and_back_when_they_do_not() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.contended(&mut steering);
    assert!(host.places.left.exists());
    host.calm(&mut steering, 4);
    assert_eq!(host.value_ns(), 0);
    host.calm(&mut steering, 1);
    assert_eq!(host.value_ns(), 200_000);
    assert!(!host.places.left.exists(), "nothing is left to undo");
    assert_eq!((steering.report.offs, steering.report.resumes), (1, 1));
}

#[test]
fn another_load_is_tried_soon() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    let busy_ns = 50_000_000;
    host.window(&mut steering, 0);
    // Regretted three times: the next attempt would wait for 40 windows.
    for windows in [5, 10, 20] {
        host.polls_in_vain();
        host.window(&mut steering, busy_ns);
        assert_eq!(host.value_ns(), 0);
        for _ in 0..windows {
            host.sleeps(500);
            host.window(&mut steering, busy_ns);
        }
        assert_eq!(host.value_ns(), 200_000);
    }
    host.polls_in_vain();
    host.window(&mut steering, busy_ns);
    host.sleeps(500);
    host.window(&mut steering, busy_ns);
    assert_eq!((host.value_ns(), steering.report.other_loads), (0, 0));
    for _ in 0..2 {
        assert_eq!(host.value_ns(), 0);
        host.sleeps(1500);
        host.window(&mut steering, busy_ns);
    }
    assert_eq!((host.value_ns(), steering.report.other_loads), (200_000, 1));
}

#[test]
fn polls_that_pay_go_on_beside_others_and_are_tried_again() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.window(&mut steering, 0);
    host.polls(1000, 900, 4_000_000, 100_000);
    host.window(&mut steering, 50_000_000);
    assert_eq!(host.value_ns(), 200_000);
    host.polls(2000, 900, 4_000_000, 4_100_000);
    host.window(&mut steering, 50_000_000);
    assert_eq!(host.value_ns(), 0);
    for _ in 0..5 {
        host.window(&mut steering, 50_000_000);
    }
    assert_eq!(host.value_ns(), 200_000);
    let report = &steering.report;
    assert_eq!((report.wanted_windows, report.paying_windows), (7, 6));
}

#[test]
fn the_operators_value_is_back_after_stop_and_after_drop() {
    let mut host = FakeHost::new();
    host.set(70_000);
    let mut steering = host.start();
    host.contended(&mut steering);
    steering.stop().unwrap();
    assert_eq!(
        (host.value_ns(), host.places.left.exists()),
        (70_000, false)
    );
    let mut steering = host.start();
    host.contended(&mut steering);
    drop(steering);
    assert_eq!(
        (host.value_ns(), host.places.left.exists()),
        (70_000, false)
    );
}

#[test]
fn windows_shorter_than_the_least_are_not_judged() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.window(&mut steering, 0);
    let soon = host.base + WINDOW * host.windows + WINDOW / 2;
    steering.step(soon, Some(50_000_000));
    assert_eq!((host.value_ns(), steering.report.windows), (200_000, 0));
}

#[test]
fn polling_in_vain_shrinks_and_success_grows() {
    let mut host = FakeHost::new();
    host.set(100_000);
    let mut steering = host.start();
    host.window(&mut steering, 0);
    host.polls(1000, 10, 50_000, 9_000_000);
    host.window(&mut steering, 0);
    assert_eq!((host.value_ns(), steering.report.shrinks), (50_000, 1));
    for i in 1..=30 {
        host.polls(
            1000 + 100 * i,
            10 + 90 * i,
            50_000 + 300_000 * i,
            9_000_000 + 100 * i,
        );
        host.window(&mut steering, 0);
    }
    assert_eq!(host.value_ns(), 200_000);
    assert_eq!(steering.report.saved_wakeups, 10 + 90 * 30);
    drop(steering);
    assert_eq!(host.value_ns(), 100_000);
}

#[test]
fn a_value_that_somebody_sets_is_the_operators_from_then_on() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.contended(&mut steering);
    host.set(30_000);
    let notes = host.calm(&mut steering, 1);
    assert_eq!(
        notes,
        [Note::Adopted {
            operator_ns: 30_000
        }]
    );
    assert_eq!(
        (host.value_ns(), host.places.left.exists()),
        (30_000, false)
    );
    host.polls_in_vain();
    host.window(&mut steering, 50_000_000);
    assert_eq!(host.value_ns(), 0);
    drop(steering);
    assert_eq!(host.value_ns(), 30_000);
}

#[test]
fn a_value_set_after_our_last_look_is_not_overwritten_by_leaving() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.contended(&mut steering);
    host.set(30_000);
    drop(steering);
    assert_eq!(
        (host.value_ns(), host.places.left.exists()),
        (30_000, false)
    );
}

#[test]
fn an_operator_who_forbade_polling_is_obeyed() {
    let mut host = FakeHost::new();
    host.set(0);
    let mut steering = host.start();
    host.calm(&mut steering, 100);
    assert_eq!((host.value_ns(), steering.report.resumes), (0, 0));
}

#[test]
fn kvm_may_come_late_go_and_come_again() {
    let mut host = FakeHost::new();
    fs::remove_file(&host.places.parameter).unwrap();
    let mut steering = host.start();
    assert_eq!(host.calm(&mut steering, 2), []);
    host.set(200_000);
    host.contended(&mut steering);
    fs::remove_file(&host.places.parameter).unwrap();
    assert_eq!(host.calm(&mut steering, 2), [Note::KvmGone]);
    assert!(!host.places.left.exists(), "went with the module");
    host.set(80_000);
    host.contended(&mut steering);
    drop(steering);
    assert_eq!(host.value_ns(), 80_000);
}

#[test]
fn a_module_loaded_anew_is_not_given_the_old_ones_value() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.contended(&mut steering);
    // Equal to what we wrote, but another module's.
    host.reload(0);
    drop(steering);
    assert_eq!((host.value_ns(), host.places.left.exists()), (0, false));
}

#[test]
fn without_counters_contention_alone_steers_and_it_is_said_once() {
    let mut host = FakeHost::new();
    fs::remove_dir_all(&host.places.counters).unwrap();
    let mut steering = host.start();
    let notes = host.calm(&mut steering, 3);
    assert_eq!(notes, [Note::NoCounters]);
    assert!(notes[0].to_string().contains("mount debugfs"));
    host.window(&mut steering, 50_000_000);
    assert_eq!(host.value_ns(), 0);
}

#[test]
fn without_waiting_times_nothing_is_touched() {
    let mut host = FakeHost::new();
    let mut places = host.places.clone();
    places.proc = host.root.path().join("proc");
    let own = places.proc.join(std::process::id().to_string());
    fs::create_dir_all(&own).unwrap();
    fs::copy("/proc/self/stat", own.join("stat")).unwrap();
    let mut steering = HaltSteering::start(true, HaltTunables::default(), places.clone());
    assert_eq!(steering.step(host.base, None), [Note::NoWaitingTimes]);
    fs::write(places.proc.join("schedstat"), "cpu0 0 0 0 0 0 0 0 5 0\n").unwrap();
    let mut steering = HaltSteering::start(true, HaltTunables::default(), places.clone());
    assert_eq!(steering.step(host.base, None), []);
    fs::write(
        places.proc.join("schedstat"),
        "cpu0 0 0 0 0 0 0 0 90000000 0\n",
    )
    .unwrap();
    host.polls_in_vain();
    steering.step(host.base + WINDOW, None);
    assert_eq!(host.value_ns(), 0);
}

#[test]
fn what_cannot_be_set_is_left_alone_and_told() {
    let mut host = FakeHost::new();
    let mut steering = host.start();
    host.window(&mut steering, 0);
    // No folder can be made where a file is.
    fs::write(host.root.path().join("run"), "").unwrap();
    host.polls_in_vain();
    let notes = host.window(&mut steering, 50_000_000);
    assert!(
        matches!(notes.first(), Some(Note::Failed { .. })),
        "{notes:?}"
    );
    assert_eq!(host.value_ns(), 200_000);
    assert_eq!(host.window(&mut steering, 50_000_000), []);
}

#[test]
fn leave_means_leave() {
    let mut host = FakeHost::new();
    let mut steering = HaltSteering::start(false, HaltTunables::default(), host.places.clone());
    host.window(&mut steering, 0);
    host.window(&mut steering, 50_000_000);
    assert_eq!(
        (host.value_ns(), host.places.left.exists()),
        (200_000, false)
    );
}

pub(crate) mod killed {
    //! kill -9, for real: this test program runs itself as the victim.

    use super::*;
    use crate::halt::left::{Left, inspect, repair};
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::Pid;
    use std::process::{Child, Command};

    const ROOT: &str = "CORUN_TEST_HALT_VICTIM";

    /// The victim: switches polling off and waits for its end. Alone it does nothing.
    #[test]
    fn victim() {
        let Some(root) = std::env::var_os(ROOT) else {
            return;
        };
        let places = at(Path::new(&root));
        let counter = places.counters.join("halt_poll_fail_ns");
        let mut steering = HaltSteering::start(true, HaltTunables::default(), places);
        let now = Instant::now();
        steering.step(now, Some(0));
        fs::write(counter, "9000000").unwrap();
        steering.step(now + WINDOW, Some(90_000_000));
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }

    /// A victim that has switched polling off; dropping kills it.
    struct Victim(Child);

    impl Victim {
        fn start(host: &FakeHost) -> Self {
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "halt::tests::killed::victim"])
                .env(ROOT, host.root.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let mut victim = Self(child);
            while fs::read_to_string(&host.places.parameter).unwrap().trim() != "0" {
                assert_eq!(victim.0.try_wait().unwrap(), None, "the victim ended");
                std::thread::sleep(Duration::from_millis(5));
            }
            victim
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }

        fn kill(mut self) -> u32 {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
            self.pid()
        }
    }

    impl Drop for Victim {
        fn drop(&mut self) {
            // Dead already is as good.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Makes `host` one where corun was killed while polling was off.
    pub(crate) fn leave(host: &FakeHost) {
        Victim::start(host).kill();
    }

    #[test]
    fn the_next_start_puts_the_operators_value_back() {
        let host = FakeHost::new();
        let pid = Victim::start(&host).kill();
        assert_eq!(host.value_ns(), 0);
        let mut steering = host.start();
        assert_eq!(
            (host.value_ns(), host.places.left.exists()),
            (200_000, false)
        );
        let restored = Note::Restored {
            pid,
            present_ns: 0,
            operator_ns: 200_000,
        };
        assert_eq!(steering.step(host.base, Some(0)), [restored]);
    }

    #[test]
    fn a_victim_that_nobody_waited_for_is_dead() {
        let host = FakeHost::new();
        let mut victim = Victim::start(&host);
        assert_eq!(
            inspect(&host.places).unwrap(),
            Left::InUse { pid: victim.pid() }
        );
        victim.0.kill().unwrap();
        let changed = Left::Changed {
            pid: victim.pid(),
            present_ns: 0,
            operator_ns: 200_000,
        };
        // Wait until it is a zombie, and leave it one.
        let id = Id::Pid(Pid::from_raw(i32::try_from(victim.pid()).unwrap()));
        waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert_eq!(inspect(&host.places).unwrap(), changed);
    }

    #[test]
    fn one_that_lives_is_left_alone() {
        let mut host = FakeHost::new();
        let victim = Victim::start(&host);
        assert_eq!(
            repair(&host.places).unwrap(),
            Left::InUse { pid: victim.pid() }
        );
        let mut steering = host.start();
        assert_eq!(
            host.calm(&mut steering, 10),
            [Note::InUse { pid: victim.pid() }]
        );
        drop(steering);
        assert_eq!((host.value_ns(), host.places.left.exists()), (0, true));
    }

    #[test]
    fn what_is_not_the_victims_is_not_touched() {
        let void = |host: &FakeHost| {
            let left = repair(&host.places).unwrap();
            assert!(matches!(left, Left::Void { .. }), "{left:?}");
            assert!(!host.places.left.exists());
        };
        let host = FakeHost::new();
        leave(&host);
        host.set(30_000);
        void(&host);
        assert_eq!(host.value_ns(), 30_000);

        let host = FakeHost::new();
        leave(&host);
        host.reload(0);
        void(&host);
        assert_eq!(host.value_ns(), 0);

        let host = FakeHost::new();
        leave(&host);
        fs::remove_file(&host.places.parameter).unwrap();
        void(&host);
        assert!(!host.places.parameter.exists(), "a file was made up");
    }

    #[test]
    fn killed_between_the_record_and_the_change_is_undone_too() {
        let host = FakeHost::new();
        leave(&host);
        // As if 200 us had been ours, and the change to 0 had not been made.
        let record = fs::read_to_string(&host.places.left).unwrap();
        let other = record.replace("\"operator_ns\":200000", "\"operator_ns\":70000");
        assert_ne!(other, record);
        fs::write(&host.places.left, other).unwrap();
        host.set(200_000);
        repair(&host.places).unwrap();
        assert_eq!(host.value_ns(), 70_000);
    }

    #[test]
    fn a_record_of_another_boot_or_one_that_is_garbage_is_void() {
        let host = FakeHost::new();
        leave(&host);
        let record = fs::read_to_string(&host.places.left).unwrap();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let other = record.replace(boot_id.trim(), "another");
        assert_ne!(other, record);
        for text in [other.as_str(), "{", ""] {
            fs::write(&host.places.left, text).unwrap();
            assert!(
                matches!(repair(&host.places).unwrap(), Left::Void { .. }),
                "{text}"
            );
            assert_eq!(host.value_ns(), 0);
        }
    }
}
