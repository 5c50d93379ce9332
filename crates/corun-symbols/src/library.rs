// SPDX-License-Identifier: GPL-2.0-only
//! The images that a user gave, and which of them a VM runs.

use crate::error::{LibraryError, MapError};
use crate::evidence::Evidence;
use crate::image::Image;
use crate::no_match::NoMatch;
use crate::source::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Images by VM, and images for any VM that they fit.
#[derive(Debug, Default)]
pub struct Library {
    images: Vec<Image>,
    /// VM's name to an index into `images`.
    by_vm: BTreeMap<String, usize>,
    /// Indexes into `images`, ascending.
    shared: Vec<usize>,
    skipped: Vec<MapError>,
}

/// A VM's kernel and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Index into [`Library::images`].
    pub image_index: usize,
    /// Where its text begins in the guest.
    pub text_base: u64,
}

impl Library {
    /// Reads what `--symbols` named. A wrong file is an error when it was named
    /// for a VM, and is passed over in a directory that has others.
    pub fn read(sources: &[Source]) -> Result<Self, LibraryError> {
        let mut library = Self::default();
        let mut files: BTreeMap<&str, &Path> = BTreeMap::new();
        for source in sources {
            match source {
                Source::Vm { vm, file } => {
                    if let Some(first) = files.insert(vm, file) {
                        return Err(LibraryError::Twice {
                            vm: vm.clone(),
                            first: first.to_owned(),
                            second: file.clone(),
                        });
                    }
                    let index = library.add(Image::read(file)?);
                    library.by_vm.insert(vm.clone(), index);
                }
                Source::Directory(directory) => library.add_directory(directory)?,
            }
        }
        Ok(library)
    }

    /// The images; the place in this slice is an image's number.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Maps in directories that could not be used, and why.
    pub fn skipped(&self) -> &[MapError] {
        &self.skipped
    }

    /// The image that the VM called `vm` runs, by what its registers say. Ask
    /// again when a register changed: a guest may boot another kernel.
    pub fn resolve(&self, vm: &str, evidence: &Evidence) -> Result<Match, NoMatch> {
        let named = self.by_vm.get(vm).copied();
        if named.is_none() && self.shared.is_empty() {
            return Err(NoMatch::NotGiven { vm: vm.to_owned() });
        }
        if evidence.lstar == 0 {
            return Err(NoMatch::NoEntry { vm: vm.to_owned() });
        }
        match named {
            Some(index) => self.check(vm, index, evidence),
            None => self.find(vm, evidence),
        }
    }

    fn check(&self, vm: &str, image_index: usize, evidence: &Evidence) -> Result<Match, NoMatch> {
        match evidence.base_of(&self.images[image_index]) {
            Ok(text_base) => Ok(Match {
                image_index,
                text_base,
            }),
            Err(why) => Err(NoMatch::Wrong {
                vm: vm.to_owned(),
                image: self.images[image_index].name.clone(),
                why,
            }),
        }
    }

    fn find(&self, vm: &str, evidence: &Evidence) -> Result<Match, NoMatch> {
        let fitting = self.shared.iter().filter_map(|&image_index| {
            let text_base = evidence.base_of(&self.images[image_index]).ok()?;
            Some(Match {
                image_index,
                text_base,
            })
        });
        let fitting: Vec<Match> = fitting.collect();
        let vm = vm.to_owned();
        let name = |m: &Match| self.images[m.image_index].name.clone();
        match fitting.as_slice() {
            [] => Err(NoMatch::NoneFits {
                vm,
                count: self.shared.len(),
                lstar: evidence.lstar,
            }),
            [only] if evidence.is_confirmed() => Ok(*only),
            [only] => Err(NoMatch::Unconfirmed {
                vm,
                image: name(only),
            }),
            several => Err(NoMatch::Several {
                vm,
                images: several.iter().map(name).collect(),
            }),
        }
    }

    /// The index of `image`; one kernel under two names is one image.
    fn add(&mut self, image: Image) -> usize {
        let known = self.images.iter().position(|i| i.is_same_kernel(&image));
        known.unwrap_or_else(|| {
            self.images.push(image);
            self.images.len() - 1
        })
    }

    fn add_directory(&mut self, directory: &Path) -> Result<(), LibraryError> {
        let files = maps_in(directory).map_err(|source| LibraryError::Directory {
            directory: directory.to_owned(),
            source,
        })?;
        let (mut found, mut problems) = (false, Vec::new());
        for file in files {
            match Image::read(&file) {
                Ok(image) => {
                    found = true;
                    let index = self.add(image);
                    self.shared.push(index);
                }
                Err(problem) => problems.push(problem),
            }
        }
        if !found {
            return Err(LibraryError::Nothing {
                directory: directory.to_owned(),
                problems,
            });
        }
        self.shared.sort_unstable();
        self.shared.dedup();
        self.skipped.append(&mut problems);
        Ok(())
    }
}

/// The `System.map*` of a directory, in order of name.
fn maps_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy());
        if name.is_some_and(|n| n.starts_with("System.map")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
