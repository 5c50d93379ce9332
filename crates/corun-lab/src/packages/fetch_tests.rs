// SPDX-License-Identifier: GPL-2.0-only
//! What a run leaves for the next one. No network: the packages are made here,
//! and the request is already resolved.

use super::manifest::sha256_of;
use super::{Fetcher, Manifest, Package, PackageError, Request, Tree};
use crate::paths::LabDirs;
use crate::progress::Progress;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

const CONTENT: &str = "usr/share/corun-test/file";

struct Cache {
    _tmp: TempDir,
    dirs: LabDirs,
    request: Request,
}

impl Cache {
    /// A cache with one downloaded package and its manifest.
    fn new() -> Self {
        let tmp = tempfile::tempdir().expect("temp dir");
        let dirs = LabDirs::new(&tmp.path().join("cache"), tmp.path()).expect("dirs");
        fs::create_dir_all(dirs.debs()).expect("mkdir");
        fs::create_dir_all(dirs.manifests()).expect("mkdir");
        let request = Request {
            name: "test".into(),
            with_dependencies: Vec::new(),
            alone: vec!["corun-test".into()],
            kernel: None,
        };
        let package = build_package(tmp.path(), &dirs.debs());
        let manifest = Manifest {
            request: request.clone(),
            kernel_release: None,
            packages: vec![package],
        };
        let path = dirs.manifests().join(format!("{}.json", request.key()));
        manifest.save(&path).expect("saves");
        Self {
            _tmp: tmp,
            dirs,
            request,
        }
    }

    fn fetch(&self, stop: bool) -> Result<Tree, PackageError> {
        let stop = AtomicBool::new(stop);
        Fetcher::new(&self.dirs, Progress::Quiet, &stop, false)?.fetch(&self.request)
    }

    /// Trees, whole or partial.
    fn trees(&self) -> usize {
        let entries = fs::read_dir(self.dirs.cache()).expect("cache");
        let names = entries.flatten().map(|e| e.file_name());
        names
            .filter(|n| {
                n.to_string_lossy().contains("tree-") || n.to_string_lossy().starts_with('.')
            })
            .count()
    }
}

fn build_package(scratch: &Path, debs: &Path) -> Package {
    let root = scratch.join("package");
    fs::create_dir_all(root.join("DEBIAN")).expect("mkdir");
    fs::create_dir_all(root.join(CONTENT).parent().expect("parent")).expect("mkdir");
    let control = "Package: corun-test\nVersion: 1\nArchitecture: all\n\
                   Maintainer: Nobody <nobody@localhost>\nDescription: test\n";
    fs::write(root.join("DEBIAN/control"), control).expect("write");
    fs::write(root.join(CONTENT), "whole").expect("write");
    let file = "corun-test_1_all.deb";
    let built = Command::new("dpkg-deb")
        .arg("--build")
        .args([&root, &debs.join(file)])
        .output()
        .expect("dpkg-deb runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Package {
        name: "corun-test".into(),
        version: "1".into(),
        size: fs::metadata(debs.join(file)).expect("built").len(),
        sha256: sha256_of(&debs.join(file)).expect("readable"),
        file: file.into(),
    }
}

fn content(tree: &Tree) -> String {
    fs::read_to_string(tree.root.join(CONTENT)).expect("unpacked")
}

#[test]
fn a_tree_is_unpacked_once() {
    let cache = Cache::new();
    let first = cache.fetch(false).expect("unpacks");
    assert_eq!(content(&first), "whole");
    // Unpacking again would bring the old content back.
    fs::write(first.root.join(CONTENT), "touched").expect("write");
    let again = cache.fetch(false).expect("found");
    assert_eq!(content(&again), "touched");
    assert_eq!(cache.trees(), 1);
}

#[test]
fn an_interrupted_unpack_does_not_poison_the_next() {
    let cache = Cache::new();
    assert!(matches!(cache.fetch(true), Err(PackageError::Interrupted)));
    assert_eq!(cache.trees(), 0);
    assert_eq!(content(&cache.fetch(false).expect("unpacks")), "whole");
}

#[test]
fn what_a_killed_unpack_left_is_removed() {
    let cache = Cache::new();
    let left = cache.dirs.cache().join(".partial-killed/usr");
    fs::create_dir_all(&left).expect("mkdir");
    assert_eq!(content(&cache.fetch(false).expect("unpacks")), "whole");
    assert!(!left.exists());
    assert_eq!(cache.trees(), 1);
}

#[test]
fn a_second_build_waits_for_the_first() {
    let cache = Cache::new();
    let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
    let _first = Fetcher::new(&cache.dirs, Progress::Quiet, &go, false).expect("locks");
    let second = Fetcher::new(&cache.dirs, Progress::Quiet, &stop, false);
    assert!(matches!(second, Err(PackageError::Interrupted)));
}
