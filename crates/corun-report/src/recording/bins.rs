// SPDX-License-Identifier: GPL-2.0-only
//! Time in bins, for a recording whose length is not known while it is read.

/// How many bins there are at most; half of them at least once it is long.
const BINS: usize = 256;

/// Sums of time, by lane and bin.
#[derive(Debug)]
pub(super) struct Bins {
    width_ns: u64,
    lanes: Vec<Vec<u64>>,
}

impl Bins {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            width_ns: 1_000,
            lanes: vec![vec![0; BINS]; lanes],
        }
    }

    /// Adds the time from `from` to `to`.
    pub(super) fn add(&mut self, lane: usize, from_ns: u64, to_ns: u64) {
        while to_ns > self.width_ns.saturating_mul(BINS as u64) {
            self.widen();
        }
        let Some(lane) = self.lanes.get_mut(lane) else {
            return;
        };
        let mut at = from_ns;
        while at < to_ns {
            let bin = at / self.width_ns;
            let end = ((bin + 1) * self.width_ns).min(to_ns);
            if let Some(sum) = usize::try_from(bin).ok().and_then(|bin| lane.get_mut(bin)) {
                *sum += end - at;
            }
            at = end;
        }
    }

    /// Two bins become one.
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for lane in &mut self.lanes {
            let merged: Vec<u64> = lane.chunks(2).map(|pair| pair.iter().sum()).collect();
            lane.fill(0);
            lane[..merged.len()].copy_from_slice(&merged);
        }
    }

    /// Middles of the bins, in seconds, that a recording of this length fills.
    pub(super) fn seconds(&self, length_ns: u64) -> Vec<f64> {
        let used = self.used(length_ns) as u64;
        let width = self.width_ns as f64 / 1e9;
        (0..used).map(|bin| (bin as f64 + 0.5) * width).collect()
    }

    /// The lane's sum by bin length: how many were so at a time, on average.
    pub(super) fn mean(&self, lane: usize, length_ns: u64) -> Vec<Option<f64>> {
        let used = self.used(length_ns);
        let lane = self.lanes.get(lane).map_or(&[][..], |l| &l[..used]);
        let mean = |(bin, sum): (usize, &u64)| {
            // The last bin is cut off where the recording ends.
            let begin = bin as u64 * self.width_ns;
            let width = self.width_ns.min(length_ns.saturating_sub(begin)).max(1);
            Some((*sum as f64 / width as f64 * 1e4).round() / 1e4)
        };
        lane.iter().enumerate().map(mean).collect()
    }

    fn used(&self, length_ns: u64) -> usize {
        usize::try_from(length_ns.div_ceil(self.width_ns)).map_or(BINS, |n| n.min(BINS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_kept_whatever_the_width() {
        let mut bins = Bins::new(2);
        bins.add(0, 500, 2_500);
        assert_eq!(bins.lanes[0][..3], [500, 1_000, 500]);
        bins.add(1, 999_999_000, 1_000_000_000);
        for lane in 0..2 {
            let sum: u64 = bins.lanes[lane].iter().sum();
            assert_eq!(sum, [2_000, 1_000][lane]);
        }
        let seconds = bins.seconds(1_000_000_000);
        assert!(
            (BINS / 2..=BINS).contains(&seconds.len()),
            "{}",
            seconds.len()
        );
        assert!(seconds.is_sorted() && seconds[0] > 0.0);
        assert_eq!(bins.mean(0, 1_000_000_000).len(), seconds.len());
    }

    #[test]
    fn means_are_by_the_time_that_there_was() {
        let mut bins = Bins::new(1);
        bins.add(0, 0, 1_500);
        assert_eq!(bins.mean(0, 1_500), [Some(1.0), Some(1.0)]);
    }
}
