// SPDX-License-Identifier: GPL-2.0-only
//! A table as a Parquet file, in the plainest form that the format has: one row
//! group, a page a column, PLAIN, uncompressed.
//!
//! By hand, because the crates that write Parquet are licensed under Apache-2.0
//! alone, which a GPL-2.0-only program cannot link. Names and numbers are those
//! of `parquet.thrift` in apache/parquet-format; structures are encoded by
//! Thrift's compact protocol.

use super::rows::{Kind, Rows};
use anyhow::{Context, Result};

/// Begins and ends a file.
const MAGIC: &[u8] = b"PAR1";

/// `Encoding::PLAIN` and `Encoding::RLE`.
const PLAIN: i64 = 0;
const RLE: i64 = 3;

impl Kind {
    /// `Type`.
    fn physical(self) -> i64 {
        match self {
            Self::Bool => 0,
            Self::Int => 2,
            Self::Real => 5,
            Self::Text => 6,
        }
    }
}

/// A column that is in the file.
struct Chunk {
    offset: i64,
    size: i64,
}

/// `table` as the bytes of a file.
pub(crate) fn write(table: &Rows) -> Result<Vec<u8>> {
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for (index, (name, kind)) in table.columns.iter().enumerate() {
        let cells: Vec<&str> = table.rows.iter().map(|row| row[index].as_str()).collect();
        let page = page(&cells, *kind).with_context(|| format!("column {name}"))?;
        let offset = number(file.len())?;
        file.extend(page_header(number(cells.len())?, number(page.len())?));
        file.extend(page);
        chunks.push(Chunk {
            offset,
            size: number(file.len())? - offset,
        });
    }
    let footer = footer(table, &chunks)?;
    file.extend(&footer);
    file.extend(u32::try_from(footer.len())?.to_le_bytes());
    file.extend(MAGIC);
    Ok(file)
}

/// A page: which cells are there, and their values.
fn page(cells: &[&str], kind: Kind) -> Result<Vec<u8>> {
    // Definition levels, 1 for a value: one bit-packed run of 1 bit each.
    let mut levels = Vec::new();
    varint(&mut levels, (cells.len().div_ceil(8) as u64) << 1 | 1);
    levels.extend(pack(cells.iter().map(|c| !c.is_empty())));
    let mut page = u32::try_from(levels.len())?.to_le_bytes().to_vec();
    page.extend(levels);
    let values = || cells.iter().filter(|c| !c.is_empty());
    match kind {
        Kind::Bool => page.extend(pack(values().map(|c| *c == "true"))),
        Kind::Int => {
            for cell in values() {
                page.extend(cell.parse::<i64>()?.to_le_bytes());
            }
        }
        Kind::Real => {
            for cell in values() {
                page.extend(cell.parse::<f64>()?.to_le_bytes());
            }
        }
        Kind::Text => {
            for cell in values() {
                page.extend(u32::try_from(cell.len())?.to_le_bytes());
                page.extend(cell.as_bytes());
            }
        }
    }
    Ok(page)
}

/// Bits, the first one lowest.
fn pack(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            bytes.push(0);
        }
        if let Some(byte) = bytes.last_mut() {
            *byte |= u8::from(bit) << (at % 8);
        }
    }
    bytes
}

/// `PageHeader` of a `DATA_PAGE`.
fn page_header(values: i64, bytes: i64) -> Vec<u8> {
    let mut data = Struct::default();
    data.i32(1, values).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
    let mut header = Struct::default();
    header.i32(1, 0).i32(2, bytes).i32(3, bytes);
    header.structure(5, data);
    header.end()
}

/// `FileMetaData`.
fn footer(table: &Rows, chunks: &[Chunk]) -> Result<Vec<u8>> {
    let rows = number(table.rows.len())?;
    let mut root = Struct::default();
    root.binary(4, b"sweep").i32(5, number(chunks.len())?);
    let leaves = table.columns.iter().map(|(name, kind)| {
        let mut leaf = Struct::default();
        leaf.i32(1, kind.physical());
        // `FieldRepetitionType::OPTIONAL`: any cell may be empty.
        leaf.i32(3, 1).binary(4, name.as_bytes());
        if *kind == Kind::Text {
            // `ConvertedType::UTF8`.
            leaf.i32(6, 0);
        }
        leaf.end()
    });
    let schema = std::iter::once(root.end()).chain(leaves).collect();
    let columns = table.columns.iter().zip(chunks).map(|((name, kind), c)| {
        let mut meta = Struct::default();
        meta.i32(1, kind.physical());
        meta.list(2, I32, [PLAIN, RLE].map(zigzag).into());
        meta.list(3, BINARY, vec![bytes(name.as_bytes())]);
        meta.i32(4, 0).i64(5, rows).i64(6, c.size).i64(7, c.size);
        meta.i64(9, c.offset);
        let mut column = Struct::default();
        column.i64(2, c.offset).structure(3, meta);
        column.end()
    });
    let mut group = Struct::default();
    group.list(1, STRUCT, columns.collect());
    group
        .i64(2, chunks.iter().map(|c| c.size).sum())
        .i64(3, rows);
    let mut file = Struct::default();
    file.i32(1, 1).list(2, STRUCT, schema).i64(3, rows);
    file.list(4, STRUCT, vec![group.end()]);
    file.binary(6, concat!("corun ", env!("CARGO_PKG_VERSION")).as_bytes());
    Ok(file.end())
}

fn number(n: usize) -> Result<i64> {
    Ok(i64::try_from(n)?)
}

/// Types of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure in the compact protocol; fields are added in ascending order.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(&mut self, id: u8, kind: u8, value: &[u8]) -> &mut Self {
        self.bytes.push((id - self.last) << 4 | kind);
        self.bytes.extend(value);
        self.last = id;
        self
    }

    fn i32(&mut self, id: u8, value: i64) -> &mut Self {
        self.field(id, I32, &zigzag(value))
    }

    fn i64(&mut self, id: u8, value: i64) -> &mut Self {
        self.field(id, I64, &zigzag(value))
    }

    fn binary(&mut self, id: u8, value: &[u8]) -> &mut Self {
        self.field(id, BINARY, &bytes(value))
    }

    fn structure(&mut self, id: u8, value: Self) -> &mut Self {
        self.field(id, STRUCT, &value.end())
    }

    /// A list of encoded elements.
    fn list(&mut self, id: u8, kind: u8, elements: Vec<Vec<u8>>) -> &mut Self {
        let mut list = vec![0xf0 | kind];
        varint(&mut list, elements.len() as u64);
        list.extend(elements.into_iter().flatten());
        self.field(id, LIST, &list)
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn bytes(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, value.len() as u64);
    out.extend(value);
    out
}

fn zigzag(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, (value << 1 ^ value >> 63).cast_unsigned());
    out
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_the_protocol_says() {
        // Apache Thrift's own examples of the compact protocol.
        let encoded = [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (150, vec![0xac, 0x02]),
        ];
        for (value, bytes) in encoded {
            assert_eq!(zigzag(value), bytes, "{value}");
        }
        assert_eq!(zigzag(i64::MIN).len(), 10);
    }

    #[test]
    fn empty_cells_have_a_level_and_no_value() {
        let page = page(&["7", "", "-1"], Kind::Int).expect("encodes");
        // Two bytes of levels: a run of one group of eight, its bits.
        assert_eq!(page[..6], [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(page[6..14], 7i64.to_le_bytes());
        assert_eq!(page[14..], (-1i64).to_le_bytes());
    }

    #[test]
    fn a_file_begins_and_ends_as_one() {
        let table = Rows {
            columns: vec![("a".to_owned(), Kind::Text), ("b".to_owned(), Kind::Bool)],
            rows: vec![vec!["x".to_owned(), "true".to_owned()]],
        };
        let file = write(&table).expect("encodes");
        let (rest, magic) = file.split_at(file.len() - 4);
        assert_eq!((&file[..4], magic), (MAGIC, MAGIC));
        let (rest, length) = rest.split_at(rest.len() - 4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
        // The footer begins with its version: field 1, an i32, 1.
        assert_eq!(rest[rest.len() - length as usize..][..2], [0x15, 2]);
    }

    #[test]
    fn cells_of_another_kind_name_their_column() {
        let table = Rows {
            columns: vec![("a".to_owned(), Kind::Int)],
            rows: vec![vec!["x".to_owned()]],
        };
        let error = write(&table).expect_err("x is no number");
        assert_eq!(error.to_string(), "column a");
    }
}
