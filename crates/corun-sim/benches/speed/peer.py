# SPDX-License-Identifier: GPL-2.0-only
"""The model of peers.rs in SimPy: prints its events and the seconds it took."""

import random
import sys
import time

import simpy

SLICE_NS = 1_000_000
BURST_NS = 3_000_000
THINK_NS = 10_000_000

events = 0


def task(env, cpus, rng):
    global events
    while True:
        yield env.timeout(rng.expovariate(1 / THINK_NS))
        events += 1
        left_ns = rng.expovariate(1 / BURST_NS)
        while left_ns > 0:
            with cpus.request() as turn:
                yield turn
                yield env.timeout(min(left_ns, SLICE_NS))
                events += 1
                left_ns -= SLICE_NS


def main():
    tasks, cpus, seconds = map(int, sys.argv[1:4])
    start = time.perf_counter()
    env = simpy.Environment()
    shared = simpy.Resource(env, capacity=cpus)
    for number in range(tasks):
        env.process(task(env, shared, random.Random(number)))
    env.run(until=seconds * 1_000_000_000)
    print(events, time.perf_counter() - start)


main()
