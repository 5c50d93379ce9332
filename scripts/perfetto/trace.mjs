// SPDX-License-Identifier: GPL-2.0-only
// What a trace file has, read without Perfetto: what its parser must find.

import { fields } from './wire.mjs';

// Numbers of Perfetto's public schema (protos/perfetto/trace).
const TRACE = { PACKET: 1 };
const PACKET = { EVENT: 11, TRACK: 60 };
const TRACK = { PROCESS: 3, THREAD: 4 };
const PROCESS = { PID: 1, NAME: 6 };
const THREAD = { PID: 1, TID: 2, NAME: 5 };
const EVENT = { TYPE: 9, FLOW: 47, FLOW_END: 48 };
const TYPE = { BEGIN: 1n, END: 2n, INSTANT: 3n, COUNTER: 4n };

/** How many slices, ends, samples and flows there are, and which VMs and vCPUs. */
export class Contents {
  slices = 0;
  ends = 0;
  samples = 0;
  flows = 0;
  flowEnds = 0;
  /** "PID NAME" */
  processes = [];
  /** "PID TID NAME" */
  threads = [];

  constructor(trace) {
    for (const [field, packet] of fields(trace)) {
      if (field !== TRACE.PACKET) {
        throw new Error(`field ${field} where a packet should be`);
      }
      this.#packet(packet);
    }
  }

  #packet(packet) {
    for (const [field, value] of fields(packet)) {
      switch (field) {
        case PACKET.EVENT: this.#event(value); break;
        case PACKET.TRACK: this.#track(value); break;
      }
    }
  }

  #event(event) {
    for (const [field, value] of fields(event)) {
      switch (field) {
        case EVENT.TYPE: this.#type(value); break;
        case EVENT.FLOW: this.flows++; break;
        case EVENT.FLOW_END: this.flowEnds++; break;
      }
    }
  }

  #type(type) {
    switch (type) {
      // An instant is a slice of no length.
      case TYPE.BEGIN:
      case TYPE.INSTANT: this.slices++; break;
      case TYPE.END: this.ends++; break;
      case TYPE.COUNTER: this.samples++; break;
      default: throw new Error(`an event of type ${type}`);
    }
  }

  #track(track) {
    for (const [field, value] of fields(track)) {
      if (field === TRACK.PROCESS) {
        const process = Object.fromEntries(fields(value));
        this.processes.push(`${process[PROCESS.PID]} ${process[PROCESS.NAME]}`);
      } else if (field === TRACK.THREAD) {
        const thread = Object.fromEntries(fields(value));
        this.threads.push(`${thread[THREAD.PID]} ${thread[THREAD.TID]} ${thread[THREAD.NAME]}`);
      }
    }
  }
}
