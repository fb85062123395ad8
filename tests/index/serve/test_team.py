"""Which engines serve: the better one alone, and both where both answer more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.index.serve.team import CLEARLY, FIRST_ALONE, HELPED, Team

ALONE = 1000.0
"""Queries a second that the leader answers."""


def serve(gain: float, seconds: float, waiting: int, step: float = 0.01) -> tuple[float, float, Team]:
    """Let queries wait; returns the rate of answers, the share of time with help, and the team."""
    team = Team({"cpu": 4.0, "gpu": 1.0})
    answered = helped = now = 0.0
    while now < seconds:
        team.weigh({"cpu": 16.0 / ALONE, "gpu": 1.0 / ALONE})
        both = len(team.active(now, int(answered), waiting)) == 2
        answered += step * ALONE * (gain if both else 1.0)
        helped += step * both
        now += step
    return answered / seconds, helped / seconds, team


@pytest.mark.parametrize("gain", [0.67, 0.8, 0.95, 1.0])
def test_help_that_does_not_help_is_given_up(gain: float) -> None:
    rate, helped, team = serve(gain, 30.0, waiting=300)
    assert team.leader == "gpu"
    assert rate >= 0.98 * ALONE
    assert helped < 0.05


@pytest.mark.parametrize("gain", [1.1, 1.3, 2.0])
def test_help_that_helps_goes_on(gain: float) -> None:
    rate, helped, _ = serve(gain, 30.0, waiting=300)
    assert helped > 0.8
    assert rate > (1 + 0.8 * (gain - 1)) * ALONE


@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_without_a_queue_one_serves(gain: float) -> None:
    assert serve(gain, 10.0, waiting=10)[1] == 0


def test_help_ends_with_the_queue() -> None:
    *_, team = serve(2.0, 0.2 * (FIRST_ALONE + HELPED // 2), waiting=300)
    assert team.is_helped
    assert team.active(100.0, 10**6, waiting=1) == ("gpu",)
    assert not team.is_helped


@given(cpu=st.floats(0.01, 100), gpu=st.floats(0.01, 100), threads=st.integers(1, 64))
def test_the_leader_takes_less_time(cpu: float, gpu: float, threads: int) -> None:
    team = Team({"cpu": float(threads), "gpu": 1.0})
    team.weigh({"cpu": cpu, "gpu": gpu})
    assert team.leader == ("gpu" if CLEARLY * gpu < cpu / threads else "cpu")
    for _ in range(1000):  # queries of another kind come
        team.weigh({"cpu": gpu, "gpu": cpu})
    best = "gpu" if cpu < gpu / threads else "cpu"
    other = {"cpu": cpu, "gpu": gpu / threads}[best]
    own = {"cpu": gpu / threads, "gpu": cpu}[best]
    if 1.2 * own < other:
        assert team.leader == best


def test_one_engine_is_never_helped() -> None:
    team = Team({"cpu": 2.0})
    team.weigh({"cpu": 5.0})
    for now in range(100):
        assert team.active(float(now), 0, 10**6) == ("cpu",)
