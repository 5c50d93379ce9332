// SPDX-License-Identifier: GPL-2.0-only
//! From packages and our own programs to a bootable L1.

use super::files::Loader;
use super::layer::{self, RunLayer};
use super::{ImageError, bzimage, comparators, cpio::Archive, emulator, files, guests, host};
use crate::case::{Case, Comparator};
use crate::packages::{Fetcher, Request, Stop, Tree, human, sha256_of, short_hash};
use crate::paths::LabDirs;
use crate::progress::Progress;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What an image must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpec {
    /// Version prefix of L1's kernel: `7.3`.
    pub host_kernel: String,
    /// Version prefixes of the guests' kernels.
    pub guest_kernels: Vec<String>,
    /// Whether a guest needs stress-ng or sysbench. Its initramfs is then 49 MB
    /// larger, and it needs [`crate::case::MIN_GUEST_MIB_WITH_TOOLS`] of memory.
    pub tools: bool,
    /// Schedulers to compare with.
    pub comparators: Vec<&'static Comparator>,
    /// Kernel modules of ours that a guest is to load, each with that guest's kernel,
    /// as in [`Self::guest_kernels`].
    pub modules: Vec<(String, String)>,
}

impl Default for ImageSpec {
    fn default() -> Self {
        Self {
            host_kernel: "7.3".to_owned(),
            guest_kernels: vec!["7.3".to_owned()],
            tools: false,
            comparators: Vec::new(),
            modules: Vec::new(),
        }
    }
}

impl ImageSpec {
    /// What `case` needs.
    pub fn for_case(case: &Case) -> Self {
        Self {
            host_kernel: case.host.kernel.clone(),
            guest_kernels: case.guests.iter().map(|g| g.kernel.clone()).collect(),
            tools: case.needs_tools(),
            comparators: case.comparators(),
            modules: case
                .guests
                .iter()
                .filter_map(|g| Some((g.kernel.clone(), g.module.clone()?)))
                .collect(),
        }
    }

    /// A module that a guest with `kernel` is to load and that `built` does not have.
    fn lacks(&self, kernel: &str, built: &[PathBuf]) -> Option<&str> {
        let is_built = |module: &str| {
            let file = format!("{module}.ko");
            built.iter().any(|path| path.ends_with(&file))
        };
        self.modules
            .iter()
            .filter(|(of, _)| of == kernel)
            .map(|(_, module)| module.as_str())
            .find(|module| !is_built(module))
    }
}

/// A built L1. In its file system, a guest kernel `7.3` is
/// `/guest/kernel-7.3/vmlinux` with `/guest/kernel-7.3/initrd`; with
/// [`ImageSpec::tools`] there is `/guest/tools.cpio`, to be appended to the
/// initrd of a guest that needs stress-ng or sysbench.
#[derive(Debug, Clone)]
pub struct Image {
    /// L1's kernel, an ELF file with a PVH entry.
    pub kernel: PathBuf,
    /// `uname -r` of L1.
    pub release: String,
    /// Versions by name, for results: `qemu`, `kernel-7.3`, ...
    pub versions: BTreeMap<String, String>,
    /// The tree that QEMU runs from.
    pub(crate) programs: PathBuf,
    /// The QEMU that runs L1.
    pub(crate) emulator: PathBuf,
    layers: Vec<PathBuf>,
}

impl Image {
    /// Writes the initramfs of one boot to `to`; returns its size in bytes.
    pub fn write_initrd(&self, run: &RunLayer, to: &Path) -> Result<u64, ImageError> {
        let error = || ImageError::io("writing", to);
        let mut out = File::create(to).map_err(error())?;
        let mut size = 0;
        for layer in &self.layers {
            let mut file = File::open(layer).map_err(ImageError::io("reading", layer))?;
            size += io::copy(&mut file, &mut out).map_err(error())?;
        }
        let mut bytes = Vec::new();
        run.write(&mut bytes)?;
        out.write_all(&bytes).map_err(error())?;
        Ok(size + bytes.len() as u64)
    }

    /// Size of the layers. Bytes.
    pub fn size(&self) -> u64 {
        let sizes = self.layers.iter().filter_map(|l| fs::metadata(l).ok());
        sizes.map(|m| m.len()).sum()
    }
}

/// Builds images in the cache.
#[derive(Debug)]
pub struct Builder<'a> {
    dirs: &'a LabDirs,
    progress: Progress,
    stop: Stop<'a>,
    refresh: bool,
}

impl<'a> Builder<'a> {
    /// A builder that shows `progress` and gives up when `stop` is set.
    pub fn new(dirs: &'a LabDirs, progress: Progress, stop: Stop<'a>) -> Self {
        Self {
            dirs,
            progress,
            stop,
            refresh: false,
        }
    }

    /// Asks the archive for newer packages even when the cache has all.
    #[must_use]
    pub fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// Builds, or finds in the cache, the image for `spec`.
    pub fn build(&self, spec: &ImageSpec) -> Result<Image, ImageError> {
        let begin = Instant::now();
        // Before the downloads: this fails at once, and is quickly mended.
        let corun = own_binary("CORUN_BIN", None)?;
        let agent = own_binary("CORUN_AGENT", Some("corun-agent"))?;
        let fetcher = Fetcher::new(self.dirs, self.progress, self.stop, self.refresh)?;
        let programs = fetcher.fetch(&Request::programs())?;
        let host = Kernel::fetch(&fetcher, &spec.host_kernel)?;
        host.require("CONFIG_SCHED_CLASS_EXT")?;
        let work = Work {
            dir: self.dirs.layers(),
            loader: Loader::of(&programs.root),
            programs: programs.manifest.tree_name(),
        };
        let mut versions =
            BTreeMap::from([(format!("kernel-{}", host.name), host.version.clone())]);
        let (emulator, faults) = work.emulator(&programs.root)?;
        if let Some(qemu) = programs.manifest.version_of("qemu-system-x86") {
            let suffix = if faults.is_empty() {
                emulator::SUFFIX
            } else {
                ""
            };
            versions.insert("qemu".to_owned(), format!("{qemu}{suffix}"));
        }
        for fault in faults {
            self.progress.note(&format!(
                "this QEMU has a fault that corun could not mend, which spoils a boot now and \
                 then: {fault}"
            ));
        }
        let mut layers = vec![work.base(&host)?];
        for name in unique(&spec.guest_kernels) {
            let kernel = Kernel::fetch(&fetcher, name)?;
            let modules = own_modules(&kernel.release)?;
            if let Some(module) = spec.lacks(name, &modules) {
                return Err(ImageError::NoModule {
                    module: module.to_owned(),
                    release: kernel.release,
                });
            }
            layers.push(work.guest(&kernel, &agent, &modules)?);
            versions.insert(format!("kernel-{name}"), kernel.version);
        }
        if spec.tools {
            layers.push(work.tools()?);
        }
        for comparator in &spec.comparators {
            let binary = comparators::find_or_build(comparator, self.progress, self.stop)?;
            layers.push(work.program(&binary, comparator.program)?);
            versions.insert(comparator.program.to_owned(), comparator.version.to_owned());
        }
        layers.push(work.program(&corun, "corun")?);
        let image = Image {
            kernel: work.kernel(&host)?,
            release: host.release,
            versions,
            programs: programs.root,
            emulator,
            layers,
        };
        self.progress.note(&format!(
            "Image of {} ready in {:.1} s ({} downloaded)",
            human(image.size()),
            begin.elapsed().as_secs_f64(),
            human(fetcher.downloaded()),
        ));
        Ok(image)
    }
}

/// A kernel's package tree.
struct Kernel {
    /// Prefix that was asked for.
    name: String,
    release: String,
    /// Debian version.
    version: String,
    /// Names the tree's content.
    key: String,
    /// `/usr/lib/modules/RELEASE` of the tree.
    modules: PathBuf,
}

impl Kernel {
    fn fetch(fetcher: &Fetcher<'_>, name: &str) -> Result<Self, ImageError> {
        let Tree { root, manifest } = fetcher.fetch(&Request::kernel(name))?;
        let release = manifest.kernel_release.clone().unwrap_or_default();
        let package = format!("linux-binary-{release}");
        Ok(Self {
            name: name.to_owned(),
            version: manifest.version_of(&package).unwrap_or_default().to_owned(),
            key: manifest.tree_name(),
            modules: root.join("usr/lib/modules").join(&release),
            release,
        })
    }

    fn require(&self, option: &'static str) -> Result<(), ImageError> {
        let config = files::read(&self.modules.join("config"))?;
        let wanted = format!("{option}=y");
        let text = String::from_utf8_lossy(&config);
        text.lines()
            .any(|line| line == wanted)
            .then_some(())
            .ok_or_else(|| ImageError::Feature {
                release: self.release.clone(),
                option,
            })
    }

    fn elf(&self) -> Result<Vec<u8>, ImageError> {
        bzimage::extract(&self.modules.join("vmlinuz"))
    }
}

/// Makes layers from one tree of programs.
struct Work {
    dir: PathBuf,
    loader: Loader,
    programs: String,
}

impl Work {
    fn kernel(&self, kernel: &Kernel) -> Result<PathBuf, ImageError> {
        let name = format!("vmlinux-{}", kernel.name);
        layer::cached(&self.dir, &name, "elf", &[&kernel.key], |out| {
            let elf = kernel.elf()?;
            out.write_all(&elf)
                .map_err(ImageError::io("writing", Path::new(&name)))?;
            out.flush()
                .map_err(ImageError::io("writing", Path::new(&name)))
        })
    }

    /// The emulator's copy, and the faults that it still has.
    fn emulator(&self, tree: &Path) -> Result<(PathBuf, Vec<&'static str>), ImageError> {
        let mut program = files::read(&tree.join(emulator::PROGRAM))?;
        let faults = emulator::mend(&mut program);
        let content = short_hash(&program);
        let copy = layer::cached(&self.dir, "qemu", "elf", &[&content], |out| {
            out.write_all(&program)
                .and_then(|()| out.flush())
                .map_err(ImageError::io("writing", Path::new("qemu")))
        })?;
        Ok((copy, faults))
    }

    fn base(&self, host: &Kernel) -> Result<PathBuf, ImageError> {
        let inputs = [&self.programs, &host.key, host::INIT];
        let name = format!("base-{}", host.name);
        self.layer(&name, &inputs, || host::base(&self.loader, &host.modules))
    }

    fn guest(
        &self,
        kernel: &Kernel,
        agent: &Path,
        modules: &[PathBuf],
    ) -> Result<PathBuf, ImageError> {
        let mut inputs = vec![
            self.programs.clone(),
            kernel.key.clone(),
            content_of(agent)?,
        ];
        for module in modules {
            inputs.push(content_of(module)?);
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let name = format!("guest-{}", kernel.name);
        self.layer(&name, &inputs, || {
            let mut inner = guests::initramfs(&self.loader, agent, &kernel.modules)?;
            guests::add_modules(&mut inner, modules)?;
            let mut outer = Archive::new();
            let dir = format!("guest/kernel-{}", kernel.name);
            outer
                .file(&format!("{dir}/vmlinux"), 0o644, kernel.elf()?)
                .file(&format!("{dir}/initrd"), 0o644, inner.bytes()?);
            Ok(outer)
        })
    }

    fn tools(&self) -> Result<PathBuf, ImageError> {
        self.layer("tools", &[&self.programs], || {
            let inner = guests::tools(&self.loader)?;
            let mut outer = Archive::new();
            outer.file("guest/tools.cpio", 0o644, inner.bytes()?);
            Ok(outer)
        })
    }

    fn program(&self, binary: &Path, name: &str) -> Result<PathBuf, ImageError> {
        let inputs = [&self.programs, &content_of(binary)?];
        self.layer(name, &inputs.map(String::as_str), || {
            host::program(&self.loader, binary, name)
        })
    }

    fn layer(
        &self,
        name: &str,
        inputs: &[&str],
        make: impl FnOnce() -> Result<Archive, ImageError>,
    ) -> Result<PathBuf, ImageError> {
        layer::cached(&self.dir, name, "cpio", inputs, |out| {
            let mut out = BufWriter::new(out);
            make()?.write(&mut out)?;
            out.flush()
                .map_err(ImageError::io("writing layer", Path::new(name)))
        })
    }
}

fn content_of(file: &Path) -> Result<String, ImageError> {
    sha256_of(file).map_err(ImageError::io("reading", file))
}

fn unique(names: &[String]) -> Vec<&String> {
    let mut names: Vec<_> = names.iter().collect();
    names.sort();
    names.dedup();
    names
}

/// Our kernel modules for the guest kernel `release`, in the order of their
/// names: what `make guest` left beside this program, or in `CORUN_GUEST`. None
/// when it was not called: most cases need none.
fn own_modules(release: &str) -> Result<Vec<PathBuf>, ImageError> {
    let named = env::var_os("CORUN_GUEST").filter(|v| !v.is_empty());
    let folder = match named {
        Some(path) => PathBuf::from(path),
        None => own_path()?.with_file_name("guest"),
    };
    let entries = fs::read_dir(folder.join(release)).into_iter().flatten();
    let mut modules: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    modules.retain(|path| path.extension().is_some_and(|e| e == "ko"));
    modules.sort();
    Ok(modules)
}

fn own_path() -> Result<PathBuf, ImageError> {
    // Tests are run from a folder below the programs'.
    if let Some(path) = env::var_os("CORUN_BIN").filter(|v| !v.is_empty()) {
        return Ok(path.into());
    }
    env::current_exe().map_err(|e| ImageError::Io("finding corun".into(), e))
}

/// Finds one of our own programs: named by `variable`, else this program
/// itself, or `beside` it.
fn own_binary(variable: &'static str, beside: Option<&str>) -> Result<PathBuf, ImageError> {
    let named = env::var_os(variable).filter(|v| !v.is_empty());
    let path = if let Some(path) = named {
        PathBuf::from(path)
    } else {
        let me = env::current_exe().map_err(|e| ImageError::Io("finding corun".into(), e))?;
        beside.map_or(me.clone(), |name| me.with_file_name(name))
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(ImageError::NotBuilt { path, variable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_a_guest_is_to_load_must_be_built() {
        let wanted = |kernel: &str, module: &str| (kernel.to_owned(), module.to_owned());
        let spec = ImageSpec {
            modules: vec![wanted("7.3", "corun_guest"), wanted("7.2", "corun_locks")],
            ..ImageSpec::default()
        };
        let built = [PathBuf::from("guest/7.3.4/corun_guest.ko")];
        assert_eq!(spec.lacks("7.3", &built), None);
        assert_eq!(spec.lacks("7.2", &built), Some("corun_locks"));
        assert_eq!(spec.lacks("7.3", &[]), Some("corun_guest"));
        assert_eq!(ImageSpec::default().lacks("7.3", &[]), None);
    }
}
