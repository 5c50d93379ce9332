// SPDX-License-Identifier: GPL-2.0-only
//! A recording's tables and charts.

use super::Recording;
use super::timeline::Interval;
use super::tracker::{OWN, STATES, State, TIMES};
use crate::latency::round;
use crate::model::{Block, Cell, Chart, Plot, Section, Series, Span, Table};
use crate::sections::distributions;
use corun_events::NO_PCPU;
use corun_lab::results::format::{nanos, number};

/// vCPUs that are drawn one by one.
const LANES: usize = 40;

fn block(id: &str, title: &str, text: &str, plot: Plot) -> Block {
    Block::Chart(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        plot,
    })
}

/// Shares of a whole; all 0 without one.
fn shares(parts: &[u64]) -> Vec<f64> {
    let all = parts.iter().sum::<u64>().max(1) as f64;
    parts.iter().map(|ns| round(*ns as f64 / all)).collect()
}

impl Recording {
    pub(crate) fn sections(&self) -> Vec<Section> {
        let sections = [
            Some(self.accounts()),
            self.over_time(),
            self.longest_wait(),
            self.distributions(),
            Some(self.counts()),
        ];
        sections.into_iter().flatten().collect()
    }

    fn accounts(&self) -> Section {
        let text = "Of each vCPU's time: on a pCPU, taken off it although it had work, waiting for \
                    a pCPU after a wake-up, halted.";
        let mut section = Section::new("accounts", "Where vCPUs' time went", text);
        let vcpus = self.tracker.vcpus();
        let names = |(vm, number, _): (usize, u32, &[u64; 5])| self.lane(vm, number);
        let all: Vec<(usize, u32, &[u64; 5])> = vcpus.collect();
        let (rows, values): (Vec<String>, Vec<Vec<f64>>) = if all.len() <= LANES {
            all.iter().map(|v| (names(*v), shares(v.2))).unzip()
        } else {
            let vms = self.vms().iter();
            vms.take(LANES)
                .map(|vm| (vm.name.clone(), shares(&vm.states_ns)))
                .unzip()
        };
        section.blocks.push(block(
            "accounts-chart",
            "Where vCPUs' time went",
            "",
            Plot::Stack {
                rows,
                parts: STATES.map(str::to_owned).to_vec(),
                shares: values,
            },
        ));
        let mut columns = vec!["VM", "vCPUs", "pCPUs used"];
        columns.extend(STATES);
        let mut table = Table::new("By VM", 1, &columns);
        for vm in self.vms() {
            let used = vm.states_ns[State::Running as usize] as f64 / self.length_ns.max(1) as f64;
            let mut cells = vec![
                Cell::text(&vm.name),
                Cell::number(Some(f64::from(vm.vcpus)), |n| format!("{n:.0}")),
                Cell::number(Some(used), |n| format!("{n:.2}")),
            ];
            let percent = |share| Cell::number(Some(share), |s| format!("{:.1} %", s * 100.0));
            cells.extend(shares(&vm.states_ns).into_iter().map(percent));
            table.rows.push(cells);
        }
        section.blocks.push(Block::Table(table));
        section
    }

    fn over_time(&self) -> Option<Section> {
        let x = self.tracker.bins.seconds(self.length_ns);
        let series = |lane: usize| -> Vec<Series> {
            let groups = self.times().iter().enumerate();
            groups
                .map(|(i, times)| Series {
                    name: times.name.clone(),
                    values: self.tracker.bins.mean(i * 2 + lane, self.length_ns),
                })
                .collect()
        };
        let lines = |y_label: &str, lane| Plot::Lines {
            x_label: "s since the recording's start".to_owned(),
            y_label: y_label.to_owned(),
            x: x.clone(),
            series: series(lane),
        };
        let text = "How many of each VM's vCPUs ran and how many waited for a pCPU, on average \
                    over each step of the axis.";
        let mut section = Section::new("over-time", "Over time", text);
        let waiting = lines("vCPUs", 1);
        section.blocks.push(block(
            "waiting-chart",
            "vCPUs that wait for a pCPU",
            "",
            waiting,
        ));
        section.blocks.push(block(
            "running-chart",
            "vCPUs that run",
            "",
            lines("vCPUs", 0),
        ));
        (!x.is_empty()).then_some(section)
    }

    fn longest_wait(&self) -> Option<Section> {
        let timeline = &self.tracker.timeline;
        let longest = timeline.longest?;
        let text = format!(
            "{} waited {} for a pCPU ({}), from {} s on: the longest wait of the recording, and \
             what the others did meanwhile.",
            self.lane(longest.vm, longest.vcpu),
            nanos((longest.to_ns - longest.from_ns) as f64),
            STATES[longest.state as usize],
            number(longest.from_ns as f64 / 1e9),
        );
        let mut section = Section::new("longest-wait", "The longest wait", &text);
        section.blocks.push(self.vcpu_lanes(&longest));
        section.blocks.extend(self.pcpu_lanes(&longest));
        let hidden = self.tracker.vcpus().count().saturating_sub(LANES);
        if hidden > 0 {
            section.blocks.push(Block::Note {
                text: format!("{hidden} more vCPUs are not drawn."),
            });
        }
        Some(section)
    }

    fn vcpu_lanes(&self, longest: &Interval) -> Block {
        let mut vcpus: Vec<(usize, u32)> = self.tracker.vcpus().map(|(vm, n, _)| (vm, n)).collect();
        // The one that waits is drawn whatever the number of VMs.
        vcpus.sort_by_key(|(vm, n)| (*vm != longest.vm, *vm, *n != longest.vcpu, *n));
        vcpus.truncate(LANES);
        vcpus.sort_unstable();
        let span = |i: &Interval| {
            let lane = vcpus.iter().position(|v| *v == (i.vm, i.vcpu))?;
            let drawn = (i.state as usize) < State::Halted as usize;
            drawn.then(|| self.clip(i, lane, i.state as usize, longest))?
        };
        let spans: Vec<Span> = self
            .tracker
            .timeline
            .around
            .iter()
            .filter_map(span)
            .collect();
        let names = vcpus.iter().map(|(vm, n)| self.lane(*vm, *n));
        self.spans(
            "vcpus-chart",
            "vCPUs",
            names.collect(),
            STATES[..3].iter().map(ToString::to_string).collect(),
            spans,
        )
    }

    fn pcpu_lanes(&self, longest: &Interval) -> Option<Block> {
        let lanes = usize::try_from(self.header.pcpus).ok()?.min(LANES);
        let span = |i: &Interval| {
            let running = i.state == State::Running && i.pcpu != NO_PCPU;
            let lane = usize::try_from(i.pcpu)
                .ok()
                .filter(|lane| *lane < lanes && running)?;
            self.clip(i, lane, i.vm.min(OWN - 1), longest)
        };
        let spans: Vec<Span> = self
            .tracker
            .timeline
            .around
            .iter()
            .filter_map(span)
            .collect();
        let names = (0..lanes).map(|n| format!("pCPU {n}")).collect();
        let states = self.times().iter().map(|t| t.name.clone()).collect();
        (!spans.is_empty()).then(|| {
            self.spans(
                "pcpus-chart",
                "pCPUs, by the VM that runs",
                names,
                states,
                spans,
            )
        })
    }

    fn clip(&self, i: &Interval, lane: usize, state: usize, longest: &Interval) -> Option<Span> {
        i.clipped(lane, state, self.tracker.timeline.from_ns, longest.to_ns)
    }

    fn spans(
        &self,
        id: &str,
        title: &str,
        lanes: Vec<String>,
        states: Vec<String>,
        spans: Vec<Span>,
    ) -> Block {
        let timeline = &self.tracker.timeline;
        let plot = Plot::Spans {
            lanes,
            states,
            from_ns: timeline.from_ns,
            to_ns: timeline.longest.map_or(self.length_ns, |l| l.to_ns),
            spans,
        };
        block(id, title, "", plot)
    }

    fn lane(&self, vm: usize, vcpu: u32) -> String {
        let name = self.vms().get(vm).map_or("?", |vm| vm.name.as_str());
        format!("{name}/{vcpu}")
    }

    fn distributions(&self) -> Option<Section> {
        let text = "How long it took, by VM. The further left a curve, the shorter.";
        let mut section = Section::new("latency", "How long things took", text);
        for (what, name) in TIMES.iter().enumerate() {
            let named: Vec<_> = self
                .times()
                .iter()
                .map(|t| (t.name.clone(), &t.histograms[what]))
                .collect();
            let id = distributions::anchor("latency", what);
            section
                .blocks
                .extend(distributions::chart(&id, name, &named));
        }
        (!section.blocks.is_empty()).then_some(section)
    }

    fn counts(&self) -> Section {
        let seconds = self.length_ns.max(1) as f64 / 1e9;
        let mut columns = vec!["event"];
        columns.extend(self.vms().iter().take(LANES).map(|vm| vm.name.as_str()));
        let mut table = Table::new("Each second", 1, &columns);
        for (name, key) in self.counted(self.vms()) {
            let mut cells = vec![Cell::text(name)];
            cells.extend(self.vms().iter().take(LANES).map(|vm| {
                let count = vm.counts.get(&key).copied().unwrap_or(0);
                Cell::number(Some(count as f64 / seconds), number)
            }));
            table.rows.push(cells);
        }
        let mut section = Section::new("events", "Events", "");
        section.blocks.push(Block::Table(table));
        section
    }
}
