// SPDX-License-Identifier: GPL-2.0-only

use super::*;

fn identity() -> Identity {
    Identity {
        schema_version: 1,
        case_text: "[case]".to_owned(),
        set: vec!["sim.seed=1".to_owned()],
        keys: vec!["host.pcpus".to_owned()],
        models: BTreeMap::new(),
        version: "0".to_owned(),
    }
}

fn point(n: u32) -> Point {
    Point {
        fingerprint: format!("f{n}"),
        values: [("host.pcpus".to_owned(), n.to_string())].into(),
        runs: Vec::new(),
    }
}

fn folder_with_two() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(folder.path(), &identity()).expect("opens");
    store.add(point(1)).expect("adds");
    store.add(point(2)).expect("adds");
    folder
}

#[test]
fn finished_points_are_found_again() {
    let folder = folder_with_two();
    let store = Store::open(folder.path(), &identity()).expect("opens");
    assert_eq!(store.get("f2"), Some(&point(2)));
    assert_eq!(store.get("f3"), None);
}

#[test]
fn a_torn_last_line_is_dropped_and_overwritten() {
    let folder = folder_with_two();
    let file = folder.path().join("points.jsonl");
    let text = std::fs::read(&file).expect("reads");
    for cut in 1..20 {
        std::fs::write(&file, &text[..text.len() - cut]).expect("writes");
        let mut store = Store::open(folder.path(), &identity()).expect("opens");
        assert_eq!(store.get("f1"), Some(&point(1)), "cut {cut}");
        assert_eq!(store.get("f2"), None, "cut {cut}");
        store.add(point(2)).expect("adds");
        drop(store);
        assert_eq!(std::fs::read(&file).expect("reads"), text, "cut {cut}");
    }
}

#[test]
fn a_broken_line_elsewhere_is_an_error_with_its_place() {
    let folder = folder_with_two();
    let file = folder.path().join("points.jsonl");
    let text = std::fs::read_to_string(&file).expect("reads");
    std::fs::write(&file, format!("{{\n{text}")).expect("writes");
    let error = Store::open(folder.path(), &identity())
        .err()
        .expect("fails");
    assert!(
        format!("{error:#}").contains("points.jsonl:1: no point"),
        "{error:#}"
    );
}

#[test]
fn another_sweeps_folder_is_refused_and_says_what_differs() {
    let folder = folder_with_two();
    let others = [
        (
            Identity {
                case_text: String::new(),
                ..identity()
            },
            "another case;",
        ),
        (
            Identity {
                set: Vec::new(),
                ..identity()
            },
            "--seed",
        ),
        (
            Identity {
                keys: Vec::new(),
                ..identity()
            },
            "grid keys",
        ),
        (
            Identity {
                version: String::new(),
                ..identity()
            },
            "build of corun",
        ),
        (
            Identity {
                models: [("a".to_owned(), "b".to_owned())].into(),
                ..identity()
            },
            "set of models",
        ),
    ];
    for (other, expected) in others {
        let error = Store::open(folder.path(), &other).err().expect("fails");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn points_of_unknown_origin_are_refused() {
    let folder = folder_with_two();
    std::fs::remove_file(folder.path().join("sweep.json")).expect("removes");
    let error = Store::open(folder.path(), &identity())
        .err()
        .expect("fails");
    assert!(error.to_string().contains("no sweep.json"), "{error}");
}

#[test]
fn two_at_once_are_refused() {
    let folder = folder_with_two();
    let _open = Store::open(folder.path(), &identity()).expect("opens");
    let error = Store::open(folder.path(), &identity())
        .err()
        .expect("fails");
    assert!(error.to_string().contains("another corun"), "{error}");
}
