// SPDX-License-Identifier: GPL-2.0-only
// Holds traces of `corun trace export --format perfetto` to what Perfetto's own
// trace processor makes of them. Run by scripts/perfetto-check.

import { readFileSync } from 'node:fs';
import { Engine } from './engine.mjs';
import { Contents } from './trace.mjs';

/** Arrows by what they are. They end in their VM, at the vCPU that their first
 * event names, or is; all others are astray. */
const ARROWS = `
  with ends as (
    select slice.id, ts, slice.name, track_id, upid,
           substr(thread.name, length('vCPU ') + 1) as vcpu
    from slice left join thread_track on thread_track.id = track_id left join thread using (utid)
  )
  select count(*) as number, case
    when a.upid is not b.upid or a.ts > b.ts then 'astray'
    when a.name || ' ' glob 'IPI to ' || b.vcpu || ' *' and b.name glob 'takes interrupt*' then 'ipi'
    when a.name glob 'is woken*' and b.name = 'running' and a.track_id = b.track_id then 'wake'
    when a.name = 'yield to ' || b.vcpu || ' granted' and b.name = 'running' then 'yield'
    else 'astray' end as kind
  from flow left join ends a on a.id = slice_out left join ends b on b.id = slice_in
  group by kind`;

/** What the parser complains of, of any severity. */
const COMPLAINTS = `
  select name, severity, value from stats
  where value > 0 and name not glob '*_duration_ns'`;

/** Questions whose answer is a number of faults. */
const FAULTS = {
  'slices that do not end': 'select count(*) as number from slice where dur < 0',
  'slices that reach out of the one they are in': `
    select count(*) as number from slice join slice as outer on outer.id = slice.parent_id
    where slice.ts < outer.ts or slice.ts + slice.dur > outer.ts + outer.dur`,
  'slices that are not where their kind belongs': `
    select count(*) as number from slice left join slice as outer on outer.id = slice.parent_id
    where slice.category in ('state', 'pcpu') and slice.depth <> 0
      or slice.category in ('guest', 'exit') and outer.category is not 'state'`,
  'slices of vCPUs on no thread of a VM': `
    select count(*) as number from slice
    left join thread_track on thread_track.id = track_id
    left join thread using (utid) left join process using (upid)
    where category in ('state', 'guest', 'exit', 'event')
      and (thread.name glob 'vCPU *' and process.name glob 'VM *') is not true`,
  'slices of pCPUs on no track of a pCPU': `
    select count(*) as number from slice join track on track.id = track_id
    left join track as pcpus on pcpus.id = track.parent_id
    where category = 'pcpu' and (track.name glob 'pCPU *' and pcpus.name = 'pCPUs') is not true`,
  'slices of no known category': `
    select count(*) as number from slice
    where (category in ('state', 'guest', 'exit', 'event', 'pcpu', 'mark')) is not true`,
  'samples of counters not between 0 and the number of vCPUs': `
    select count(*) as number from counter
    left join process_counter_track as track on track.id = track_id
    left join (select upid, count(*) as vcpus from thread where name glob 'vCPU *' group by upid)
      using (upid)
    where (value between 0 and vcpus and track.name in ('vCPUs running', 'vCPUs ready')) is not true`,
};

/** Names that only one of two lists has. */
function sameNames(problems, what, inFile, seen) {
  const missing = inFile.filter((name) => !seen.includes(name));
  const strange = seen.filter((name) => !inFile.includes(name));
  for (const name of missing) {
    problems.push(`${what} ${name} is not seen`);
  }
  for (const name of strange) {
    problems.push(`${what} ${name} is seen, and not in the file`);
  }
}

function byKind(engine, sql) {
  return Object.fromEntries(engine.query(sql).map(({ kind, number }) => [kind, number]));
}

const sum = (numbers) => Object.values(numbers).reduce((a, b) => a + b, 0);

/** What the parser finds. */
function findings(engine) {
  const one = (sql) => engine.query(sql)[0].number;
  const names = (sql) => engine.query(sql).map((row) => Object.values(row).join(' '));
  return {
    duration_ns: one('select end_ts - start_ts as number from trace_bounds'),
    slices: byKind(engine, 'select category as kind, count(*) as number from slice group by category'),
    flows: byKind(engine, ARROWS),
    samples: one('select count(*) as number from counter'),
    counters: one('select count(distinct track_id) as number from counter'),
    pcpus: one("select count(distinct track_id) as number from slice where category = 'pcpu'"),
    // Number 0 is the parser's own, for idle CPUs; main threads that it adds have no name.
    vms: names('select pid, name from process where name is not null and pid <> 0'),
    vcpus: names(`select process.pid, tid, thread.name from thread join process using (upid)
      where thread.name is not null and tid <> 0`),
  };
}

/** What is wrong, in words. */
function judge(engine, found, file) {
  const problems = engine.query(COMPLAINTS)
    .map(({ name, severity, value }) => `the parser complains: ${name} (${severity}): ${value}`);
  for (const [fault, sql] of Object.entries(FAULTS)) {
    const [{ number }] = engine.query(sql);
    if (number !== 0) {
      problems.push(`${fault}: ${number}`);
    }
  }
  const flows = sum(found.flows);
  // The parser passes over an end too many in silence.
  const { event = 0, mark = 0 } = found.slices;
  const stretches = sum(found.slices) - event - mark;
  for (const [what, inFile, seen] of [
    ['slices', file.slices, sum(found.slices)],
    ['ends of slices', file.ends, stretches],
    ['beginnings of flows', file.flows, flows],
    ['ends of flows', file.flowEnds, flows],
    ['samples of counters', file.samples, found.samples],
  ]) {
    if (inFile !== seen) {
      problems.push(`${inFile} ${what} are in the file, the parser has ${seen}`);
    }
  }
  if (found.flows.astray) {
    problems.push(`flows that lead where they should not: ${found.flows.astray}`);
  }
  sameNames(problems, 'process', file.processes, found.vms);
  sameNames(problems, 'thread', file.threads, found.vcpus);
  for (const [what, number] of [['vCPU', found.vcpus.length], ['track of a pCPU', found.pcpus],
    ['sample of a counter', found.samples]]) {
    if (number === 0) {
      problems.push(`there is no ${what}`);
    }
  }
  return problems;
}

/** A trace's findings and problems. */
async function check(folder, path) {
  try {
    const trace = readFileSync(path);
    const file = new Contents(trace);
    const engine = await Engine.start(folder);
    engine.load(trace);
    const found = findings(engine);
    return { ...found, problems: judge(engine, found, file) };
  } catch (error) {
    // The script is one line of 150 kB, which comes with some errors.
    return { problems: [`cannot be read: ${error.message.slice(0, 500)}`] };
  }
}

function say(path, result) {
  if (result.problems.length) {
    console.log(`${path}: not as it should be`);
    result.problems.forEach((problem) => console.log(`  ${problem}`));
    return;
  }
  const kinds = Object.entries(result.flows).map(([kind, number]) => `${number} ${kind}`).join(', ');
  console.log(`${path}: ok: ${(result.duration_ns / 1e9).toFixed(3)} s, ${sum(result.slices)} slices, `
    + `${sum(result.flows)} flows (${kinds}), ${result.samples} samples of ${result.counters} counters, `
    + `${result.vms.length} VMs, ${result.vcpus.length} vCPUs, ${result.pcpus} pCPUs`);
}

const [folder, ...args] = process.argv.slice(2);
const json = args[0] === '--json';
let good = true;
for (const path of json ? args.slice(1) : args) {
  const result = await check(folder, path);
  good &&= result.problems.length === 0;
  if (json) {
    console.log(JSON.stringify({ trace: path, ...result }));
  } else {
    say(path, result);
  }
}
process.exitCode = good ? 0 : 1;
