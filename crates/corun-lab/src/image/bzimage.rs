// SPDX-License-Identifier: GPL-2.0-only
//! Takes the kernel proper out of a distribution's `vmlinuz`: the emulated
//! machine starts the ELF file directly, which saves the slow decompression.

use super::ImageError;
use std::fs;
use std::io::Read;
use std::path::Path;

// Offsets of the x86 boot protocol's setup header.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ELF: [u8; 4] = *b"\x7fELF";

/// Reads the kernel ELF out of the `vmlinuz` at `path`.
pub(super) fn extract(path: &Path) -> Result<Vec<u8>, ImageError> {
    let bytes = fs::read(path).map_err(ImageError::io("reading", path))?;
    payload(&bytes)
        .and_then(decompress)
        .map_err(|why| ImageError::Kernel {
            path: path.to_owned(),
            why,
        })
}

fn payload(image: &[u8]) -> Result<&[u8], String> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    if image.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err("no x86 boot header".into());
    }
    // 0 stands for 4, for the sake of very old loaders.
    let sectors = match image[SETUP_SECTORS] {
        0 => 4,
        n => usize::from(n),
    };
    let (offset, length) = word(PAYLOAD_OFFSET)
        .zip(word(PAYLOAD_LENGTH))
        .ok_or("the boot header is cut off")?;
    let start = (sectors + 1) * 512 + offset;
    image
        .get(start..start + length)
        .ok_or_else(|| "the file is cut off".into())
}

fn decompress(payload: &[u8]) -> Result<Vec<u8>, String> {
    if !payload.starts_with(&ZSTD) {
        return Err("its payload is not compressed with zstd".into());
    }
    // The build appends the uncompressed size, which is not part of the frame.
    let frame = &payload[..payload.len().saturating_sub(4)];
    let failed = |e| format!("damaged payload: {e}");
    let mut decoder = zstd::Decoder::new(frame).map_err(failed)?.single_frame();
    // Kernels are packed with the largest window.
    decoder.window_log_max(31).map_err(failed)?;
    let mut elf = Vec::new();
    decoder.read_to_end(&mut elf).map_err(failed)?;
    if elf.starts_with(&ELF) {
        Ok(elf)
    } else {
        Err("its payload is no ELF file".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(kernel: &[u8]) -> Vec<u8> {
        let mut packed = zstd::encode_all(kernel, 3).expect("packs");
        packed.extend(u32::try_from(kernel.len()).expect("small").to_le_bytes());
        let mut image = vec![0; 3 * 512 + 64];
        image[SETUP_SECTORS] = 2;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&64_u32.to_le_bytes());
        let length = u32::try_from(packed.len()).expect("small");
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        image.extend(packed);
        image.extend([0xaa; 100]);
        image
    }

    fn from(image: &[u8]) -> Result<Vec<u8>, String> {
        payload(image).and_then(decompress)
    }

    #[test]
    fn the_kernel_is_found_and_unpacked() {
        let kernel = [&ELF[..], &[7; 5000]].concat();
        assert_eq!(from(&image(&kernel)).as_deref(), Ok(&kernel[..]));
    }

    #[test]
    fn damage_is_told() {
        let mut cut = image(b"\x7fELF");
        cut.truncate(3 * 512 + 70);
        assert!(from(&cut).expect_err("cut").contains("cut off"));
        assert!(
            from(b"MZ")
                .expect_err("short")
                .contains("no x86 boot header")
        );
        assert!(
            from(&image(b"not elf"))
                .expect_err("no ELF")
                .contains("no ELF")
        );
    }
}
