// SPDX-License-Identifier: GPL-2.0-only
//! Maps that are read, and maps that are refused with a reason.

use super::LINKED_AT;
use crate::error::MapError;
use crate::image::{Image, RANGES_MAX};
use corun_policy::Region;
use std::fmt::Write;
use std::path::Path;

fn parse(text: &str) -> Result<Image, MapError> {
    Image::from_bytes(Path::new("System.map"), text.as_bytes())
}

fn fixture() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/maps/System.map-7.3");
    std::fs::read_to_string(file).unwrap()
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_real_map_gives_each_function_its_class() {
    let image = parse(&fixture()).unwrap();
    assert_eq!(image.text_start, LINKED_AT);
    assert_eq!(image.entry_syscall, LINKED_AT + 0x80);
    assert_eq!(image.compat_entries, [0x1f20, 0x20b0]);
    let base = LINKED_AT + (77 << 21);
    assert_eq!(image.text_base(base + 0x80), Some(base));
    for line in fixture().lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let address = u64::from_str_radix(fields[0], 16).unwrap();
        let region = image.region_at(base, address - LINKED_AT + base);
        let expected = match fields[2] {
            "_etext" | "_sinittext" | "init_task" => Region::Unknown,
            "native_queued_spin_lock_slowpath" | "osq_lock" | "kvm_wait" => Region::LockWait,
            "smp_call_function_many_cond" => Region::AckWait,
            "_raw_spin_unlock" | "rwsem_wake.isra.0" => Region::LockHeld,
            "flush_tlb_func" => Region::Tlb,
            "get_page_from_freelist" | "flush_tlb_mm_range" => Region::Mm,
            "try_to_wake_up" | "finish_task_switch.isra.0" => Region::Sched,
            "asm_sysvec_call_function" | "__flush_smp_call_function_queue.cold" => Region::Irq,
            "pv_native_safe_halt" | "do_idle" => Region::Idle,
            "vfs_read" | "_raw_spin_lock" | "entry_SYSCALL_64" => Region::Kernel,
            _ => continue,
        };
        assert_eq!(region, expected, "{line}");
    }
}

#[test]
fn padding_belongs_to_what_precedes_it() {
    let text = "ffffffff81000000 T _text\n\
                ffffffff81000080 T entry_SYSCALL_64\n\
                ffffffff81000100 T _raw_spin_unlock\n\
                ffffffff81000130 t __pfx__raw_read_unlock\n\
                ffffffff81000140 T _raw_read_unlock\n\
                ffffffff81000170 T vfs_read\n\
                ffffffff81200000 T _etext\n";
    let ranges = parse(text).unwrap().ranges;
    let starts: Vec<_> = ranges.iter().map(|r| (r.start_offset, r.region)).collect();
    assert_eq!(
        starts,
        [
            (0, Region::Kernel),
            (0x100, Region::LockHeld),
            (0x170, Region::Kernel)
        ]
    );
}

#[test]
fn symbols_of_a_running_kernel_are_those_of_its_map() {
    let moved: String = fixture().lines().fold(String::new(), |mut all, line| {
        let (address, rest) = line.split_once(' ').unwrap();
        let address = u64::from_str_radix(address, 16).unwrap() + (123 << 21);
        writeln!(all, "{address:016x} {rest}").unwrap();
        all
    });
    let module = "ffffffffc0a01000 t kvm_vcpu_halt\t[kvm]\n";
    assert_eq!(
        parse(&(moved + module)).unwrap(),
        parse(&fixture()).unwrap()
    );
}

#[test]
fn a_malformed_line_is_named() {
    let text = fixture().replacen("ffffffff81001f20 T", "ffffffff81001f2z T", 1);
    let line = 1 + text.lines().position(|l| l.contains("1f2z")).unwrap();
    let message = message(&text);
    assert!(
        message.starts_with(&format!("System.map:{line}: expected")),
        "{message}"
    );
    assert!(message.contains("hexadecimal"), "{message}");
}

#[test]
fn hidden_addresses_are_refused() {
    let text: String = fixture().lines().fold(String::new(), |mut all, line| {
        writeln!(all, "0000000000000000 {}", &line[17..]).unwrap();
        all
    });
    assert!(
        message(&text).contains("kptr_restrict"),
        "{}",
        message(&text)
    );
}

#[test]
fn what_every_kernel_has_must_be_there() {
    for (gone, named) in [
        (" _etext", "_etext"),
        (" entry_SYSCALL_64\n", "entry_SYSCALL_64"),
    ] {
        let text = fixture().replace(gone, " elsewhere\n");
        let message = message(&text);
        assert!(
            message.contains(&format!("no symbol {named}:")),
            "{message}"
        );
        assert!(message.contains("nm -n vmlinux"), "{message}");
    }
    let without_text = fixture().replace(" _text", " a");
    assert!(parse(&without_text).is_ok(), "_stext does as well");
    let without_both = without_text.replace(" _stext", " b");
    assert!(message(&without_both).contains("no symbol _text:"));
    assert!(message("").contains("no symbol _text:"));
}

#[test]
fn other_machines_kernels_are_refused() {
    let arm64 = fixture().replace("ffffffff8", "ffff80008");
    assert!(
        message(&arm64).contains("x86-64 has it between"),
        "{}",
        message(&arm64)
    );
    let backwards = fixture().replace("T _etext", "T a") + "ffffffff80ffffff T _etext\n";
    assert!(message(&backwards).contains("_etext is at"));
}

#[test]
fn files_that_are_no_text_are_refused() {
    let elf = Image::from_bytes(Path::new("vmlinux"), b"\x7fELF\x02").unwrap_err();
    assert!(
        elf.to_string().contains("nm -n vmlinux > System.map"),
        "{elf}"
    );
    let packed = Image::from_bytes(Path::new("a.gz"), b"\x1f\x8b\x08\xff").unwrap_err();
    assert!(packed.to_string().contains("not a System.map"), "{packed}");
    let missing = Image::read(Path::new("/nonexistent/System.map")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("/nonexistent/System.map: cannot read")
    );
}

#[test]
fn debians_stand_in_is_refused_with_what_it_says() {
    let text = "ffffffffffffffff B The real System.map is in the linux-image-1-dbg package\n";
    let message = message(text);
    assert!(message.contains("linux-image-1-dbg package"), "{message}");
    assert!(message.contains("/proc/kallsyms"), "{message}");
}

#[test]
fn ranges_are_bounded() {
    let with = |functions: usize| {
        let mut text = "ffffffff81000000 T _text\nffffffff81000080 T entry_SYSCALL_64\n".to_owned();
        for n in 0..functions {
            let (address, name) = (LINKED_AT + 0x100 + 16 * n as u64, ["irq_exit", "a"][n % 2]);
            writeln!(text, "{address:x} t {name}").unwrap();
        }
        text + "ffffffff82000000 T _etext\n"
    };
    assert_eq!(
        parse(&with(RANGES_MAX - 1)).unwrap().ranges.len(),
        RANGES_MAX
    );
    let message = message(&with(RANGES_MAX));
    assert!(message.contains("4097 ranges"), "{message}");
}
