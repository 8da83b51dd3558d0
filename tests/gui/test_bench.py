"""The benchmark of the window still measures; its figures are for people, and no test."""

from __future__ import annotations

import bench_lane


def test_it_measures_appends_and_beats(window, client):
    assert len(bench_lane.appends(2_000)) == 2
    assert bench_lane.heartbeat(window, client, rate=2000, seconds=0.4)


def test_run_after_run_holds_no_more_memory(window, client):
    held = bench_lane.growth(window, client, runs=60)
    assert held[-1] - held[20] < 20_000_000
