// SPDX-License-Identifier: GPL-2.0-only
//! Takes files out of package trees: programs with their libraries, firmware,
//! kernel modules.

use super::ImageError;
use super::cpio::Archive;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps an amd64 library.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// The loader's name in every amd64 program.
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";

/// The package tree's own loader. The tree is newer than the machine, so its
/// programs need its C library.
#[derive(Debug, Clone)]
pub(crate) struct Loader {
    tree: PathBuf,
}

impl Loader {
    pub(crate) fn of(tree: &Path) -> Self {
        let tree = tree.to_owned();
        Self { tree }
    }

    fn libraries(&self) -> PathBuf {
        self.tree.join(LIBRARIES)
    }

    fn path(&self) -> PathBuf {
        self.libraries().join("ld-linux-x86-64.so.2")
    }

    /// A command that runs `program` (a path) with the tree's libraries.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut cmd = Command::new(self.path());
        cmd.arg("--library-path").arg(self.libraries());
        cmd.arg(program);
        // Libraries of the machine must not slip in.
        cmd.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
        cmd
    }

    /// A shell script that runs `program` as [`Self::command`] does.
    pub(crate) fn script(&self, program: &Path) -> String {
        format!(
            "#!/bin/sh\nunset LD_LIBRARY_PATH LD_PRELOAD\nexec '{}' --library-path '{}' '{}' \"$@\"\n",
            self.path().display(),
            self.libraries().display(),
            program.display()
        )
    }

    /// The shared libraries that `program` loads, without the loader.
    fn needed_by(&self, program: &Path) -> Result<Vec<PathBuf>, ImageError> {
        let loader = self.path();
        let output = Command::new(&loader)
            .arg("--library-path")
            .arg(self.libraries())
            .arg("--list")
            .arg(program)
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("LD_PRELOAD")
            .output()
            .map_err(ImageError::io("running", &loader))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let missing: Vec<_> = text.lines().filter(|l| l.contains("not found")).collect();
        if !output.status.success() || !missing.is_empty() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(ImageError::Libraries {
                program: program.to_owned(),
                said: format!("{}{}", missing.join("; "), errors.trim()),
            });
        }
        Ok(listed(&text))
    }

    /// Adds a dynamically linked program, its libraries and the loader.
    pub(super) fn add_program(
        &self,
        archive: &mut Archive,
        program: &Path,
        to: &str,
    ) -> Result<(), ImageError> {
        archive.file(to, 0o755, read(program)?);
        self.add_libraries(archive, program)
    }

    /// Adds the libraries of `program`, and the loader.
    pub(super) fn add_libraries(
        &self,
        archive: &mut Archive,
        program: &Path,
    ) -> Result<(), ImageError> {
        if !archive.contains(LOADER) {
            archive.file(LOADER, 0o755, read(&self.path())?);
        }
        for library in self.needed_by(program)? {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            let to = format!("{LIBRARIES}/{name}");
            if !name.starts_with("ld-linux") && !archive.contains(&to) {
                archive.file(&to, 0o755, read(&library)?);
            }
        }
        Ok(())
    }

    /// Path of a program or file of the tree.
    pub(super) fn find(&self, path: &str) -> Result<PathBuf, ImageError> {
        let found = self.tree.join(path);
        if found.exists() {
            Ok(found)
        } else {
            Err(ImageError::Lacking {
                what: path.to_owned(),
            })
        }
    }
}

/// Paths in the loader's list: `name => /path (address)`.
fn listed(text: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| line.split_once("=> "))
        .filter_map(|(_, rest)| rest.split(" (0x").next())
        .map(|path| PathBuf::from(path.trim()))
        .collect();
    paths.sort();
    paths
}

/// Reads a file, following links.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    fs::read(path).map_err(ImageError::io("reading", path))
}

/// Finds the kernel module `name` (without suffix) below `modules` and unpacks
/// it, so that L1 need not.
pub(super) fn module(modules: &Path, name: &str) -> Result<Vec<u8>, ImageError> {
    let plain = format!("{name}.ko");
    let packed = format!("{name}.ko.xz");
    let path = find_below(modules, &|file| {
        file == plain.as_str() || file == packed.as_str()
    })
    .ok_or(ImageError::Lacking {
        what: packed.clone(),
    })?;
    if path.extension() == Some(OsStr::new("ko")) {
        return read(&path);
    }
    let file = File::open(&path).map_err(ImageError::io("reading", &path))?;
    let mut bytes = Vec::new();
    lzma_rs::xz_decompress(&mut BufReader::new(file), &mut bytes).map_err(|e| {
        ImageError::Kernel {
            path: path.clone(),
            why: format!("module does not unpack: {e:?}"),
        }
    })?;
    Ok(bytes)
}

fn find_below(dir: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    let here = entries.iter().find(|p| p.file_name().is_some_and(wanted));
    here.cloned().or_else(|| {
        let mut dirs = entries.iter().filter(|p| p.is_dir() && !p.is_symlink());
        dirs.find_map(|d| find_below(d, wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibz.so.1 => /a b/libz.so.1 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 => /a b/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            listed(text),
            [
                Path::new("/a b/ld-linux-x86-64.so.2"),
                Path::new("/a b/libz.so.1")
            ]
        );
    }

    #[test]
    fn a_module_is_found_by_its_exact_name() {
        let dir = tempfile::tempdir().expect("temp dir");
        let below = dir.path().join("kernel/arch");
        fs::create_dir_all(&below).expect("mkdir");
        fs::write(below.join("kvm-amd.ko"), "amd").expect("write");
        let mut packed = Vec::new();
        lzma_rs::xz_compress(&mut &b"plain"[..], &mut packed).expect("packs");
        fs::write(below.join("kvm.ko.xz"), packed).expect("write");
        assert_eq!(module(dir.path(), "kvm").expect("found"), b"plain");
        assert!(matches!(
            module(dir.path(), "vm"),
            Err(ImageError::Lacking { .. })
        ));
    }
}
