// SPDX-License-Identifier: GPL-2.0-only
// Perfetto's trace processor as its viewer runs it: WebAssembly, and the script
// of the worker that hosts it. Here that worker is a context of its own with
// the few things of a browser that the script asks for.

import { webcrypto as crypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import vm from 'node:vm';
import { bytes, fields, number, packed } from './wire.mjs';

// Numbers of Perfetto's public schema (protos/perfetto/trace_processor).
const RPC = { MESSAGE: 1, SEQUENCE: 1, REQUEST: 2, INVALID: 4, FATAL: 5,
  DATA: 101, QUERY: 103, APPENDED: 201, RESULT: 203 };
const METHOD = { APPEND: 1, FINALIZE: 2, QUERY: 3 };
const APPENDED = { ERROR: 2 };
const QUERY = { SQL: 1 };
const RESULT = { NAME: 1, ERROR: 2, BATCH: 3 };
const BATCH = { TYPES: 1, INTEGERS: 2, FLOATS: 3, STRINGS: 5 };
const CELL = { NULL: 1, INTEGER: 2, FLOAT: 3, STRING: 4 };

/** What the worker is given at a time: less than the 32 MiB of its buffer. */
const CHUNK = 16 << 20;

/** The script takes a build for 64-bit memories where those are known, which it
 * finds out with a module of nothing but such a memory (section 5, flag 4). The
 * other build runs everywhere. */
const NO_MEMORY64 = `WebAssembly.Module = class extends WebAssembly.Module {
  constructor(code) {
    if (code[8] === 5 && code[11] === 4) throw new Error('no 64-bit memories');
    super(code);
  }
}`;

/** A web worker's context, whose files are in `folder`. */
function worker(folder) {
  class XMLHttpRequest {
    open(_method, url) {
      this.url = url;
    }

    send() {
      this.response = readFileSync(join(folder, basename(this.url)));
    }
  }
  const ignore = () => {};
  const context = vm.createContext({
    XMLHttpRequest,
    WorkerGlobalScope: Object,
    location: new URL('file:///engine_bundle.js'),
    // What it says last comes with its errors.
    console: { log: ignore, warn: ignore, error: ignore },
    crypto, performance, TextDecoder, setTimeout,
  });
  context.self = context;
  vm.runInContext(NO_MEMORY64, context);
  return context;
}

/** A question's rows out of the messages that answer it. */
class Rows {
  names = [];
  rows = [];

  take(result) {
    for (const [field, value] of fields(result)) {
      switch (field) {
        case RESULT.NAME: this.names.push(value.toString()); break;
        case RESULT.ERROR: throw new Error(value.toString());
        case RESULT.BATCH: this.batch(value); break;
      }
    }
  }

  batch(message) {
    const cells = { types: [], integers: [], floats: [], strings: [] };
    for (const [field, value] of fields(message)) {
      switch (field) {
        case BATCH.TYPES: cells.types = [...value]; break;
        case BATCH.INTEGERS: cells.integers = [...packed(value)]; break;
        case BATCH.FLOATS:
          for (let at = 0; at < value.length; at += 8) {
            cells.floats.push(value.readDoubleLE(at));
          }
          break;
        case BATCH.STRINGS: cells.strings = value.toString().split('\0'); break;
      }
    }
    const values = cells.types.map((type) => {
      switch (type) {
        case CELL.NULL: return null;
        case CELL.INTEGER: return Number(cells.integers.shift());
        case CELL.FLOAT: return cells.floats.shift();
        case CELL.STRING: return cells.strings.shift();
        default: throw new Error(`a cell of type ${type}`);
      }
    });
    while (values.length) {
      const row = values.splice(0, this.names.length);
      this.rows.push(Object.fromEntries(this.names.map((name, i) => [name, row[i]])));
    }
  }
}

/** The trace processor. */
export class Engine {
  #port;
  #context;
  #sequence = 0;
  #answers = [];

  /** Starts it from the files in `folder`. */
  static async start(folder) {
    const engine = new Engine();
    engine.#context = worker(folder);
    const script = join(folder, 'engine_bundle.js');
    vm.runInContext(readFileSync(script, 'utf8'), engine.#context, { filename: script });
    engine.#port = { postMessage: (answer) => engine.#answers.push(answer) };
    engine.#context.onmessage({ data: engine.#port });
    // It finishes its start in what it has queued.
    await new Promise((resolve) => { setTimeout(resolve); });
    return engine;
  }

  /** Asks, and returns the answers' values of `field`: they come at once. */
  #call(method, args, field) {
    const message = Buffer.concat([
      number(RPC.SEQUENCE, this.#sequence++), number(RPC.REQUEST, method), args]);
    const request = bytes(RPC.MESSAGE, message);
    // Of the context's own kind: the worker insists.
    const data = vm.runInContext(`new Uint8Array(${request.length})`, this.#context);
    data.set(request);
    this.#port.onmessage({ data });
    const values = [];
    for (const answer of this.#answers.splice(0)) {
      for (const [, rpc] of fields(answer)) {
        for (const [of, value] of fields(rpc)) {
          if (of === RPC.FATAL || of === RPC.INVALID) {
            throw new Error(`trace processor: ${value}`);
          }
          if (of === field) {
            values.push(value);
          }
        }
      }
    }
    return values;
  }

  /** Takes a whole trace. */
  load(trace) {
    for (let at = 0; at < trace.length; at += CHUNK) {
      const data = bytes(RPC.DATA, trace.subarray(at, at + CHUNK));
      for (const result of this.#call(METHOD.APPEND, data, RPC.APPENDED)) {
        for (const [field, value] of fields(result)) {
          if (field === APPENDED.ERROR) {
            throw new Error(value.toString());
          }
        }
      }
    }
    this.#call(METHOD.FINALIZE, Buffer.alloc(0), undefined);
  }

  /** Rows of an SQL query, as objects by column. */
  query(sql) {
    const rows = new Rows();
    const args = bytes(RPC.QUERY, bytes(QUERY.SQL, sql));
    for (const result of this.#call(METHOD.QUERY, args, RPC.RESULT)) {
      rows.take(result);
    }
    return rows.rows;
  }
}
