// SPDX-License-Identifier: GPL-2.0-only
//! Network receive: the line, the NIC's ring, the softirq, the socket.

use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{Phase, RING, Seg, Why, irq};
use crate::machine::stats::counter;
use crate::symbols;

/// Grain of the time by which jitter is weighed.
const REPORT_STEP_NS: u64 = 1_000;

impl Machine<'_> {
    /// The sender puts the next batch on the line, if its window lets it.
    pub(crate) fn send_batch(&mut self, f: usize) {
        let now_ns = self.now_ns;
        let flow = &mut self.flows[f];
        if flow.line_busy || flow.window > 0 && flow.in_flight >= flow.window {
            return;
        }
        flow.line_busy = true;
        flow.in_flight += 1;
        // The line did not wait for the NIC: a batch that came late does not
        // hold up the next one.
        let before_ns = flow.late_ns.min(flow.batch_ns);
        let late_ns = flow.wobble.sample(&mut flow.rng);
        flow.late_ns = late_ns;
        let at_ns = now_ns + flow.batch_ns - before_ns + late_ns;
        self.arm(Event::Batch(f), at_ns);
    }

    pub(crate) fn batch_arrives(&mut self, f: usize) {
        let now_ns = self.now_ns;
        let flow = &mut self.flows[f];
        flow.line_busy = false;
        let v = flow.vcpu;
        if flow.ring.len() < RING {
            flow.ring.push_back(now_ns - flow.late_ns);
            self.raise(v, irq::NET);
        } else {
            flow.in_flight -= 1;
            let vm = self.vcpus[v].vm;
            self.stats[vm].count(counter::DROPPED);
        }
        self.send_batch(f);
        let flow = &mut self.flows[f];
        if !flow.line_busy {
            flow.late_ns = 0;
        }
    }

    /// The softirq begins: work in proportion to what is in the rings.
    pub(crate) fn begin_net_rx(&mut self, v: usize) {
        let vm = &self.vms[self.vcpus[v].vm];
        let rings = vm.flows.iter().filter(|f| self.flows[**f].vcpu == v);
        let batches: usize = rings.map(|f| self.flows[*f].ring.len()).sum();
        if batches > 0 {
            let ns = self.costs.net_rx_ns * batches as u64;
            self.vcpus[v].soft = Some(Seg::kernel(ns, symbols::NET_RX));
        }
    }

    /// The softirq is done: what was in the rings is in the sockets.
    pub(crate) fn soft_done(&mut self, v: usize) {
        self.vcpus[v].soft = None;
        let vm = self.vcpus[v].vm;
        for i in 0..self.vms[vm].flows.len() {
            let f = self.vms[vm].flows[i];
            let flow = &mut self.flows[f];
            if flow.vcpu != v {
                continue;
            }
            let mut dropped = 0;
            while let Some(sent_ns) = flow.ring.pop_front() {
                // `sk_rcvbuf` of a datagram socket; TCP's window keeps below it.
                if flow.socket_limit > 0 && flow.socket.len() >= flow.socket_limit {
                    flow.in_flight -= 1;
                    dropped += 1;
                } else {
                    flow.socket.push_back(sent_ns);
                }
            }
            self.stats[vm].counters[counter::DROPPED] += dropped;
            let flow = &mut self.flows[f];
            if !flow.socket.is_empty()
                && let Some(t) = flow.reader.take()
            {
                self.wake_thread(t, Some(v));
            }
        }
        self.preempt_if_due(v);
    }

    /// Thread `t` reads a batch. False: there is none, it goes to sleep.
    pub(crate) fn receive(&mut self, t: usize, f: usize) -> bool {
        let now_ns = self.now_ns;
        let flow = &mut self.flows[f];
        let Some(sent_ns) = flow.socket.pop_front() else {
            flow.reader = Some(t);
            self.sleep_for(t, Why::Packet(f));
            return false;
        };
        if let Some((last_sent_ns, last_read_ns)) = flow.last {
            // RFC 1889, section 6.3.1, as iPerf does it.
            let sent_gap = sent_ns - last_sent_ns;
            let read_gap = now_ns - last_read_ns;
            let change = sent_gap.abs_diff(read_gap);
            flow.jitter_ns = flow.jitter_ns - flow.jitter_ns / 16 + change / 16;
            let (vm, stat, jitter_ns) = (self.threads[t].vm, flow.stat, flow.jitter_ns);
            // It reports at the end of an interval: with the first packet that
            // it reads then. A packet counts for the time before it.
            self.stats[vm].record_n(stat, jitter_ns, read_gap / REPORT_STEP_NS);
        }
        let flow = &mut self.flows[f];
        flow.last = Some((sent_ns, now_ns));
        let rtt_ns = flow.rtt.sample(&mut flow.rng);
        flow.acks.push_back(now_ns + rtt_ns);
        if flow.acks.len() == 1 {
            self.arm(Event::Ack(f), now_ns + rtt_ns);
        }
        true
    }

    pub(crate) fn ack_arrives(&mut self, f: usize) {
        let flow = &mut self.flows[f];
        flow.acks.pop_front();
        flow.in_flight -= 1;
        if let Some(next_ns) = flow.acks.front().copied() {
            let at_ns = next_ns.max(self.now_ns);
            self.arm(Event::Ack(f), at_ns);
        }
        self.send_batch(f);
    }

    /// A woken reader tries again.
    pub(crate) fn receive_again(&mut self, t: usize, f: usize) {
        if self.receive(t, f) {
            self.proceed(t);
        } else {
            debug_assert!(matches!(self.threads[t].phase, Phase::Sleep(_)));
        }
    }
}
