// SPDX-License-Identifier: GPL-2.0-only
//! An array of the kernel's that it writes while we read it.

use crate::error::{During, Result};
use libbpf_rs::MapCore;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

/// Readings of an element that changes meanwhile, before its last figures stand.
const READINGS: u32 = 100;

/// An element of such an array.
///
/// # Safety
/// A plain structure of integers, for which any bytes will do, laid out as the kernel's, whose
/// first field, a `u64`, is odd while the element changes.
pub(super) unsafe trait Sequenced: Copy {}

/// An array map, mapped for reading.
pub(super) struct Mapped<T> {
    first: NonNull<T>,
    len: usize,
    bytes: NonZeroUsize,
}

/// A copy of an element.
pub(super) struct Reading<T> {
    pub(super) copy: T,
    /// When it was made. Nanoseconds.
    pub(super) now_ns: u64,
    /// The element did not change meanwhile: its parts belong together.
    pub(super) whole: bool,
    seq: u64,
}

impl<T: Sequenced> Mapped<T> {
    /// Maps `map`, which has `len` elements.
    pub(super) fn map(map: &impl MapCore, len: u32) -> Result<Self> {
        let len = len as usize;
        let bytes = NonZeroUsize::new(len * size_of::<T>()).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: a new mapping that the kernel places, of a map that is this long: BPF rounds its
        // length up to whole pages, as mmap does.
        let at = unsafe {
            nix::sys::mman::mmap(
                None,
                bytes,
                nix::sys::mman::ProtFlags::PROT_READ,
                nix::sys::mman::MapFlags::MAP_SHARED,
                map.as_fd(),
                0,
            )
        };
        let at = at
            .map_err(std::io::Error::from)
            .during("mapping the accounts")?;
        Ok(Self {
            first: at.cast(),
            len,
            bytes,
        })
    }

    /// Elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where element `at` is; `None` beyond the end. Its fields may change at any time: to be
    /// read as volatile.
    pub(super) fn at(&self, at: usize) -> Option<*const T> {
        // SAFETY: within the mapping, which has this many elements.
        (at < self.len).then(|| unsafe { self.first.add(at).as_ptr().cast_const() })
    }

    /// Element `at`; `None` beyond the end. `now_ns` tells the time in nanoseconds.
    pub(super) fn read(&self, at: usize, now_ns: impl Fn() -> u64) -> Option<Reading<T>> {
        let element = self.at(at)?;
        let mut reading = look(element, &now_ns);
        for _ in 1..READINGS {
            if reading.whole {
                break;
            }
            std::hint::spin_loop();
            reading = look(element, &now_ns);
        }
        Some(reading)
    }

    /// Whether element `at` is still as it was read.
    pub(super) fn is_still(&self, at: usize, reading: &Reading<T>) -> bool {
        fence(Ordering::Acquire);
        self.at(at).map(sequence) == Some(reading.seq)
    }

    /// `elements` as if the kernel had them; they must outlive what this returns.
    #[cfg(test)]
    pub(super) fn of(elements: &mut [T]) -> std::mem::ManuallyDrop<Self> {
        let len = elements.len();
        std::mem::ManuallyDrop::new(Self {
            first: NonNull::from(elements).cast(),
            len,
            bytes: NonZeroUsize::MIN,
        })
    }
}

/// Odd while `element` changes, and another each time that it has.
fn sequence<T: Sequenced>(element: *const T) -> u64 {
    // SAFETY: `element` is in the mapping, aligned as the kernel's array is, and begins with this
    // number; the kernel may write meanwhile, which volatile reads of integers bear.
    unsafe { element.cast::<u64>().read_volatile() }
}

fn look<T: Sequenced>(element: *const T, now_ns: &impl Fn() -> u64) -> Reading<T> {
    let seq = sequence(element);
    fence(Ordering::Acquire);
    // SAFETY: as in `sequence`; all fields are integers, for which any bytes will do.
    let copy = unsafe { element.read_volatile() };
    let now_ns = now_ns();
    fence(Ordering::Acquire);
    Reading {
        copy,
        now_ns,
        whole: seq.is_multiple_of(2) && sequence(element) == seq,
        seq,
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing refers to any more. That it cannot be
        // unmapped is not worth a word: the process holds it until it ends.
        let _ = unsafe { nix::sys::mman::munmap(self.first.cast(), self.bytes.get()) };
    }
}
