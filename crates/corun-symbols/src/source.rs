// SPDX-License-Identifier: GPL-2.0-only
//! The argument of `--symbols`.

use std::path::PathBuf;
use std::str::FromStr;

/// One `--symbols` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `VM=FILE`: the map of one VM's kernel.
    Vm {
        /// The VM's name, as corun shows it.
        vm: String,
        /// The map.
        file: PathBuf,
    },
    /// `DIR`: each `System.map*` in it is for any VM that it fits.
    Directory(PathBuf),
}

/// An argument of `--symbols` that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected VM=FILE, or a directory with System.map files; found {0:?}")]
pub struct SourceError(String);

impl FromStr for Source {
    type Err = SourceError;

    /// `VM=FILE` when something without a slash stands before the first `=`.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        match text.split_once('=') {
            Some((vm, _)) if vm.contains('/') => Ok(Self::Directory(text.into())),
            Some((vm, file)) if !vm.is_empty() && !file.is_empty() => Ok(Self::Vm {
                vm: vm.to_owned(),
                file: file.into(),
            }),
            None if !text.is_empty() => Ok(Self::Directory(text.into())),
            _ => Err(SourceError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn both_forms_are_told_apart() {
        let vm = Source::Vm {
            vm: "db".into(),
            file: "/a=b/System.map".into(),
        };
        assert_eq!("db=/a=b/System.map".parse(), Ok(vm));
        for directory in ["/boot", "maps", "./a=b"] {
            assert_eq!(directory.parse(), Ok(Source::Directory(directory.into())));
        }
        for nothing in ["", "=", "db=", "=/boot/System.map"] {
            assert!(nothing.parse::<Source>().is_err(), "{nothing:?}");
        }
    }
}
