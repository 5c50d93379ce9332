// SPDX-License-Identifier: GPL-2.0-only
//! Which VM runs which image: found, or not found for a reason.

use super::{Library, Match};
use crate::evidence::Evidence;
use crate::source::Source;
use std::path::{Path, PathBuf};

const LINKED_AT: u64 = 0xffff_ffff_8100_0000;
const KASLR: u64 = 42 << 21;
const BASE: u64 = LINKED_AT + KASLR;
/// After HLT in `pv_native_safe_halt`, of each fixture.
const HALT_7_2: u64 = 0xffff_ffff_8211_6ee9 + KASLR;
const HALT_7_3: u64 = 0xffff_ffff_8215_3c99 + KASLR;

fn fixture(version: &str) -> PathBuf {
    let maps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/maps");
    maps.join(format!("System.map-{version}"))
}

/// A directory with maps under other names: `(name, version)`.
fn directory(maps: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, version) in maps {
        std::fs::copy(fixture(version), directory.path().join(name)).unwrap();
    }
    directory
}

fn any(directory: &tempfile::TempDir) -> Source {
    Source::Directory(directory.path().to_owned())
}

fn of_vm(vm: &str, version: &str) -> Source {
    Source::Vm {
        vm: vm.into(),
        file: fixture(version),
    }
}

fn evidence(halt_rip: u64) -> Evidence {
    Evidence {
        lstar: BASE + 0x80,
        cstar: BASE + 0x20b0,
        halt_rip,
    }
}

fn reason(library: &Library, vm: &str, evidence: Evidence) -> String {
    library.resolve(vm, &evidence).unwrap_err().to_string()
}

#[test]
fn a_named_map_is_taken_at_the_users_word_and_checked() {
    let library = Library::read(&[of_vm("db", "7.3")]).unwrap();
    let found = Match {
        image_index: 0,
        text_base: BASE,
    };
    assert_eq!(library.resolve("db", &evidence(0)), Ok(found));
    assert_eq!(library.resolve("db", &evidence(HALT_7_3)), Ok(found));
    let halted = reason(&library, "db", evidence(HALT_7_2));
    assert!(halted.contains("halted at"), "{halted}");
    let cstar = Evidence {
        cstar: BASE + 0x20b1,
        ..evidence(0)
    };
    assert!(reason(&library, "db", cstar).contains("CSTAR"));
    let below = Evidence {
        lstar: LINKED_AT + 0x80 - (2 << 20),
        cstar: 0,
        halt_rip: 0,
    };
    assert!(reason(&library, "db", below).contains("LSTAR"));
    assert!(reason(&library, "web", evidence(0)).contains("--symbols web=FILE"));
    assert!(reason(&library, "db", Evidence::default()).contains("booting"));
}

#[test]
fn of_two_kernels_with_the_same_entry_the_halted_vcpu_tells() {
    let maps = directory(&[("System.map-a", "7.2"), ("System.map-b", "7.3")]);
    let library = Library::read(&[any(&maps)]).unwrap();
    let several = reason(&library, "db", evidence(0));
    assert!(several.contains("System.map-a, "), "{several}");
    assert!(several.contains("--symbols db=FILE"), "{several}");
    for (image_index, halt_rip) in [(0, HALT_7_2), (1, HALT_7_3)] {
        let found = Match {
            image_index,
            text_base: BASE,
        };
        assert_eq!(library.resolve("db", &evidence(halt_rip)), Ok(found));
    }
    let strange = reason(&library, "db", evidence(BASE + 0x1000));
    assert!(strange.contains("none of the 2 maps"), "{strange}");
}

#[test]
fn a_lone_map_is_not_taken_for_its_entry_alone() {
    let maps = directory(&[("System.map", "7.2")]);
    let library = Library::read(&[any(&maps)]).unwrap();
    let unconfirmed = reason(&library, "db", evidence(0));
    assert!(unconfirmed.contains("may fit"), "{unconfirmed}");
    assert!(library.resolve("db", &evidence(HALT_7_2)).is_ok());
    assert!(library.resolve("db", &evidence(HALT_7_3)).is_err());
}

#[test]
fn one_kernel_under_two_names_is_one_image() {
    let maps = directory(&[("System.map-a", "7.3"), ("System.map-b", "7.3")]);
    let library = Library::read(&[of_vm("web", "7.3"), any(&maps)]).unwrap();
    assert_eq!(library.images().len(), 1);
    assert!(library.resolve("db", &evidence(HALT_7_3)).is_ok());
}

#[test]
fn the_named_map_beats_the_directory() {
    let maps = directory(&[("System.map", "7.3")]);
    let library = Library::read(&[any(&maps), of_vm("db", "7.2")]).unwrap();
    let found = library.resolve("db", &evidence(HALT_7_2)).unwrap();
    assert!(library.images()[found.image_index].name.ends_with("7.2"));
    assert!(library.resolve("db", &evidence(HALT_7_3)).is_err());
}

#[test]
fn a_directory_passes_over_what_is_broken() {
    let maps = directory(&[("System.map-a", "7.3"), ("config", "7.2")]);
    std::fs::write(maps.path().join("System.map-z"), "nonsense\n").unwrap();
    let library = Library::read(&[any(&maps)]).unwrap();
    assert_eq!((library.images().len(), library.skipped().len()), (1, 1));
    assert!(library.skipped()[0].to_string().contains("System.map-z:1:"));

    std::fs::remove_file(maps.path().join("System.map-a")).unwrap();
    let nothing = Library::read(&[any(&maps)]).unwrap_err().to_string();
    assert!(nothing.contains("no usable System.map*"), "{nothing}");
    assert!(nothing.contains("System.map-z:1:"), "{nothing}");
}

#[test]
fn contradictions_and_what_is_not_there_are_errors() {
    let twice = Library::read(&[of_vm("db", "7.2"), of_vm("db", "7.3")]).unwrap_err();
    assert!(
        twice.to_string().contains("two maps for the VM db"),
        "{twice}"
    );
    let absent = Source::Directory("/nonexistent".into());
    let absent = Library::read(&[absent]).unwrap_err();
    assert!(absent.to_string().contains("write VM=FILE"), "{absent}");
    assert!(Library::read(&[of_vm("db", "none")]).is_err());
}
