// SPDX-License-Identifier: GPL-2.0-only
// Protocol buffers' wire format, as far as Perfetto's traces and the trace
// processor's questions and answers need it.

/** What a field is written as. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** A number's seven bits a byte, the least significant first. */
function varint(number) {
  const bytes = [];
  let rest = BigInt(number);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** A field with a number. */
export function number(field, value) {
  return Buffer.concat([varint(field << 3 | VARINT), varint(value)]);
}

/** A field with text, bytes or a message. */
export function bytes(field, value) {
  const content = Buffer.from(value);
  return Buffer.concat([varint(field << 3 | BYTES), varint(content.length), content]);
}

/** Reads what is in `buffer` from front to back. */
class Reader {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }

  get done() {
    return this.at >= this.buffer.length;
  }

  take(length) {
    const end = this.at + length;
    if (end > this.buffer.length) {
      throw new Error(`cut off: ${end - this.buffer.length} bytes are missing`);
    }
    const part = this.buffer.subarray(this.at, end);
    this.at = end;
    return part;
  }

  /** A number of 64 bits without a sign. */
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 64n; shift += 7n) {
      const [byte] = this.take(1);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return BigInt.asUintN(64, value);
      }
    }
    throw new Error('a number of more than 64 bits');
  }

  value(type) {
    switch (type) {
      case VARINT: return this.varint();
      case FIXED64: return this.take(8).readBigUInt64LE();
      case BYTES: return this.take(Number(this.varint()));
      case FIXED32: return BigInt(this.take(4).readUInt32LE());
      default: throw new Error(`wire type ${type}`);
    }
  }
}

/** A message's fields: pairs of number and value, a BigInt or a Buffer. */
export function* fields(message) {
  const reader = new Reader(Buffer.from(message.buffer, message.byteOffset, message.length));
  while (!reader.done) {
    const tag = Number(reader.varint());
    yield [tag >> 3, reader.value(tag & 7)];
  }
}

/** Packed numbers with a sign. */
export function* packed(content) {
  const reader = new Reader(content);
  while (!reader.done) {
    yield BigInt.asIntN(64, reader.varint());
  }
}
