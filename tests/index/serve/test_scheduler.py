from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.errors import DeadlineMissedError, EngineUnavailableError
from polars_tadoc.index.index import Index
from polars_tadoc.index.query import find as find_module
from polars_tadoc.index.query.batches import join, select
from polars_tadoc.index.query.find import find
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.rank import Found
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.results import as_frame
from polars_tadoc.index.serve import server as server_module
from polars_tadoc.index.serve.scheduler import CLEARLY, Scheduler, Traits, Work
from polars_tadoc.scoring.bm25 import Scoring

PAIR = {"cpu": Traits(2, 0.1, 1.0), "gpu": Traits(overhead=0.5, batch_seconds=2.0)}

seconds = st.floats(0.01, 8.0)
queries = st.lists(
    st.tuples(st.floats(0.0, 5.0), seconds, seconds | st.just(math.inf), st.floats(0.0, 30.0) | st.just(math.inf)),
    max_size=40,
)
engine_sets = st.sampled_from([PAIR, {"cpu": Traits(2)}, {"cpu": Traits(3.5, 0.1, 1.0), "gpu": Traits()}])


@dataclass
class Run:
    """What happened: engines work as long as predicted."""

    started: dict[int, tuple[float, float, str]] = field(default_factory=dict)
    missed: dict[int, float] = field(default_factory=dict)
    works: list[tuple[float, str, Work[int]]] = field(default_factory=list)


def group_of(engines: dict[str, Traits], predicted: dict[str, float]) -> str:
    shares = {name: predicted[name] / traits.threads for name, traits in engines.items()}
    order = sorted(engines, key=shares.__getitem__)
    if len(order) > 1 and shares[order[1]] < CLEARLY * shares[order[0]]:
        return "either"
    return order[0]


def simulate(engines: dict[str, Traits], stream: list[tuple[float, float, float, float]]) -> Run:
    """Every engine asks whenever it has no work, after each arrival and each end of work."""
    scheduler: Scheduler[int] = Scheduler(engines)
    arrivals = sorted((offset, number) for number, (offset, *_) in enumerate(stream))
    free_at = dict.fromkeys(engines, 0.0)
    run, now = Run(), 0.0
    while True:
        while arrivals and arrivals[0][0] <= now:
            _, number = arrivals.pop(0)
            arrived, cpu, gpu, allowed = stream[number]
            scheduler.add(number, {"cpu": cpu, "gpu": gpu}, arrived + allowed)
        for missed in scheduler.expire(now):
            assert missed not in run.missed
            run.missed[missed] = now
        for name, free in free_at.items():
            if free <= now:
                work = scheduler.take(name, now)
                assert not work.missed  # they have just been taken out
                run.works.append((now, name, work))
                for number in work.keys:
                    assert number not in run.started
                    run.started[number] = (now, now + work.seconds, name)
                if work.keys:
                    free_at[name] = now + work.seconds
        later = [free for free in free_at.values() if free > now]
        later += [arrivals[0][0]] if arrivals else []
        expiry = scheduler.next_expiry()
        later += [math.nextafter(expiry, math.inf)] if expiry < math.inf else []
        if not later:
            assert not len(scheduler)
            return run
        now = min(later)


@given(engine_sets, queries)
def test_every_query_is_answered_or_missed_once_and_in_time(
    engines: dict[str, Traits], stream: list[tuple[float, float, float, float]]
) -> None:
    run = simulate(engines, stream)
    assert sorted([*run.started, *run.missed]) == list(range(len(stream)))
    for number, (arrived, cpu, gpu, allowed) in enumerate(stream):
        predicted = {"cpu": cpu, "gpu": gpu}
        if number in run.started:
            start, end, engine = run.started[number]
            assert start >= arrived
            assert predicted[engine] < math.inf
            assert end <= arrived + allowed + 1e-9
        else:
            alone = min(engines[name].overhead + predicted[name] for name in engines)
            assert run.missed[number] + alone > arrived + allowed - 1e-9


@given(engine_sets, queries)
def test_only_an_engine_without_work_of_its_own_steals(
    engines: dict[str, Traits], stream: list[tuple[float, float, float, float]]
) -> None:
    run = simulate(engines, [(0.0, cpu, gpu, math.inf) for _, cpu, gpu, _ in stream])
    groups = {n: group_of(engines, {"cpu": cpu, "gpu": gpu}) for n, (_, cpu, gpu, _) in enumerate(stream)}
    waiting = set(groups)
    for _, engine, work in run.works:
        stolen = [number for number in work.keys if groups[number] not in (engine, "either")]
        assert work.stolen == len(stolen)
        assert work.moved == 0
        if stolen:
            assert stolen == work.keys
            assert not any(groups[number] in (engine, "either") for number in waiting)
        elif any(groups[number] == "either" for number in work.keys):
            assert not any(groups[number] == engine for number in waiting - set(work.keys))
        waiting -= set(work.keys)


@given(engine_sets, queries)
def test_the_earliest_deadline_of_a_group_goes_first(
    engines: dict[str, Traits], stream: list[tuple[float, float, float, float]]
) -> None:
    scheduler: Scheduler[int] = Scheduler(engines)
    groups = {}
    for number, (_, cpu, gpu, allowed) in enumerate(stream):
        scheduler.add(number, {"cpu": cpu, "gpu": gpu}, 100.0 + allowed)
        groups[number] = group_of(engines, {"cpu": cpu, "gpu": gpu})
    for engine in engines:
        for group in (engine, "either"):
            taken = []
            while (work := scheduler.take(engine, 0.0)).keys and not work.stolen:
                assert work.seconds <= 100.0 + min(stream[number][3] for number in work.keys)
                taken += [number for number in work.keys if groups[number] == group]
                groups = {
                    number: where for number, where in groups.items() if number not in work.keys or where == group
                }
            deadlines = [100.0 + stream[number][3] for number in taken]
            assert deadlines == sorted(deadlines)


def test_a_batch_ends_before_its_oldest_deadline() -> None:
    scheduler: Scheduler[str] = Scheduler({"gpu": Traits(overhead=1.0, batch_seconds=10.0)})
    scheduler.add("soon", {"gpu": 1.0}, deadline=4.0)
    scheduler.add("later", {"gpu": 1.5}, deadline=50.0)
    scheduler.add("last", {"gpu": 1.5}, deadline=60.0)
    first = scheduler.take("gpu", now=0.0)
    assert (first.keys, first.seconds) == (["soon", "later"], 3.5)
    assert scheduler.take("gpu", now=3.5).keys == ["last"]
    assert scheduler.take("gpu", now=6.0).keys == []


def test_a_batch_lasts_no_longer_than_it_may() -> None:
    scheduler: Scheduler[int] = Scheduler({"gpu": Traits(overhead=1.0, batch_seconds=3.0)})
    for number in range(8):
        scheduler.add(number, {"gpu": 1.0})
    assert [scheduler.take("gpu", now=0.0).keys for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    scheduler.add(9, {"gpu": 100.0})
    assert scheduler.take("gpu", now=0.0).keys == [9]


def test_a_batch_is_searched_by_all_threads_and_lasts_as_long_as_its_longest_query() -> None:
    scheduler: Scheduler[int] = Scheduler({"cpu": Traits(threads=4, overhead=0.5, batch_seconds=3.0)})
    for number in range(10):
        scheduler.add(number, {"cpu": 1.0}, deadline=100.0)
    scheduler.add(10, {"cpu": 5.0}, deadline=200.0)
    for number in range(11, 30):
        scheduler.add(number, {"cpu": 1.0}, deadline=300.0)
    works = [scheduler.take("cpu", now=0.0) for _ in range(3)]
    assert [work.keys for work in works] == [[*range(10)], [*range(10, 26)], [*range(26, 30)]]
    assert [work.seconds for work in works] == [3.0, 5.5, 1.5]


def test_too_many_queries_do_not_make_batches_small() -> None:
    scheduler: Scheduler[int] = Scheduler({"gpu": Traits(overhead=1.0, batch_seconds=4.0)})
    for number in range(10):
        scheduler.add(number, {"gpu": 1.0}, deadline=3.0 + number)
    assert scheduler.take("gpu", now=0.0).keys == [2, 3, 4, 5]
    work = scheduler.take("gpu", now=5.0)
    assert (work.missed, work.keys) == ([0, 1], [7, 8, 9])
    assert scheduler.take("gpu", now=9.0).missed == [6]


def test_what_was_put_off_is_answered_when_nothing_else_waits() -> None:
    scheduler: Scheduler[int] = Scheduler({"gpu": Traits(overhead=0.5, batch_seconds=2.0)})
    scheduler.add(0, {"gpu": 1.0}, deadline=2.0)
    for number in (1, 2):
        scheduler.add(number, {"gpu": 1.0}, deadline=90.0)
    assert scheduler.take("gpu", now=0.0).keys == [1, 2]
    assert scheduler.take("gpu", now=0.25).keys == [0]


def test_nobody_steals_what_its_owner_answers_earlier() -> None:
    scheduler: Scheduler[int] = Scheduler({"cpu": Traits(), "gpu": Traits()})
    for number in range(5):
        scheduler.add(number, {"cpu": 3.5, "gpu": 1.0})
    assert scheduler.take("cpu", now=0.0).keys == [0]  # in 3.5 seconds, the owner in 5
    assert scheduler.take("cpu", now=0.0).keys == [1]  # the owner in 4
    assert scheduler.take("cpu", now=0.0).keys == []
    assert scheduler.take("gpu", now=0.0).keys == [2]


def test_the_thief_takes_what_it_is_least_bad_at() -> None:
    scheduler: Scheduler[str] = Scheduler({"cpu": Traits(), "gpu": Traits()})
    scheduler.add("bad", {"cpu": 40.0, "gpu": 1.0})
    scheduler.add("least", {"cpu": 20.0, "gpu": 8.0})
    scheduler.add("long", {"cpu": 900.0, "gpu": 30.0})
    assert scheduler.take("cpu", now=0.0).keys == ["least"]


def test_what_one_engine_cannot_answer_in_time_goes_to_the_other() -> None:
    scheduler: Scheduler[str] = Scheduler({"cpu": Traits(), "gpu": Traits(overhead=3.0, batch_seconds=1.0)})
    scheduler.add("a", {"cpu": 4.0, "gpu": 1.5}, deadline=4.2)  # the GPU's with its overhead is 4.5
    work = scheduler.take("gpu", now=0.0)
    assert (work.keys, work.missed, work.moved) == ([], [], 1)
    assert scheduler.take("cpu", now=0.1).keys == ["a"]


def test_a_late_query_is_handed_back_by_whoever_looks() -> None:
    scheduler: Scheduler[str] = Scheduler({"cpu": Traits(), "gpu": Traits()})
    scheduler.add("a", {"cpu": 1.0, "gpu": 0.1}, deadline=1.0)
    scheduler.add("b", {"cpu": 1.0, "gpu": 0.1}, deadline=9.0)
    assert scheduler.next_expiry() == 0.9
    work = scheduler.take("gpu", now=0.95)
    assert (work.missed, work.keys) == (["a"], ["b"])
    assert scheduler.next_expiry() == math.inf


def test_what_waits_can_be_taken_out() -> None:
    scheduler: Scheduler[int] = Scheduler(PAIR)
    for number in range(6):
        scheduler.add(number, {"cpu": 1.0 + number, "gpu": 2.0}, deadline=100.0)
    scheduler.take("cpu", now=0.0)
    assert scheduler.remove_all() == [1, 2, 3, 4, 5]
    assert len(scheduler) == 0
    assert scheduler.take("gpu", now=0.0).keys == []


@pytest.mark.parametrize("predicted", [{"cpu": 0.0, "gpu": 1.0}, {"cpu": math.inf, "gpu": math.inf}])
def test_predicted_times_must_be_usable(predicted: dict[str, float]) -> None:
    scheduler: Scheduler[int] = Scheduler(PAIR)
    with pytest.raises(ValueError, match="predicted seconds"):
        scheduler.add(0, predicted)


TEXTS = ["to be or not to be", "to do is to be", "do be do be do", "what is not to be done", ""] * 30
QUERIES = ["be", "to do", "not be", "is what", "unknown", "", "do done", "be unknown", "to be or not"]


@pytest.fixture(scope="module")
def index() -> Index:
    return tadoc.build_index(pl.Series("text", TEXTS).tadoc.compress())


@pytest.mark.parametrize("mode", ["and", "or", "and_or"])
def test_a_server_answers_as_a_search_does(index: Index, engine: str, mode: str) -> None:
    with index.serve(k=4, mode=mode, engine=engine, scoring="bm25+") as server:
        futures = [(query, server.submit(query)) for query in QUERIES * 20]
    for query, future in futures:
        assert future.result(timeout=0).equals(index.search(query, 4, mode=mode, scoring="bm25+", engine=engine))
    statistics = server.statistics()
    assert statistics.answered == {engine: len(futures)}
    assert (statistics.late, statistics.missed, statistics.failed, statistics.waiting) == (0, 0, 0, 0)
    assert 0 < statistics.latency["p50"] <= statistics.latency["p99"] <= statistics.latency["max"]


def test_a_server_on_all_engines(index: Index) -> None:
    mask = np.arange(len(TEXTS)) % 2 == 0
    with index.serve(filter=mask, deadline=np.float32(60)) as server:  # type: ignore[arg-type]
        futures = [(query, server.submit(query)) for query in QUERIES * 20]
        for query, future in futures:
            assert future.result(timeout=60).equals(index.search(query, filter=mask))
    assert sum(server.statistics().answered.values()) == len(futures)


def test_many_threads_may_submit(index: Index) -> None:
    expected = {query: index.search(query) for query in QUERIES}
    with index.serve() as server, ThreadPoolExecutor(8) as pool:
        futures = list(pool.map(lambda query: (query, server.submit(query)), QUERIES * 100))
        assert all(future.result(timeout=60).equals(expected[query]) for query, future in futures)
    assert sum(server.statistics().answered.values()) == 100 * len(QUERIES)


def test_two_engines_answer_together(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"cpu": CPU, "gpu": Engine(CPU.kernels)}
    monkeypatch.setattr(server_module, "_engines", lambda asked: both)
    expected = {query: index.search(query) for query in QUERIES}
    with index.serve() as server, ThreadPoolExecutor(4) as pool:
        futures = list(pool.map(lambda query: (query, server.submit(query)), QUERIES * 100))
        assert all(future.result(timeout=60).equals(expected[query]) for query, future in futures)
    assert sum(server.statistics().answered.values()) == 100 * len(QUERIES)


def test_queries_of_several_batches_are_searched_as_one(index: Index) -> None:
    scoring = Scoring("bm25+", 1.5, 0.75, 0.5)
    texts = [['"to be" or', "do", '"not to"'], ["be", '"to do" "to be"', ""], ["unknown", "not be"]]
    batches = [plan(index, pl.Series(own), scoring, "submit") for own in texts]
    chosen = [[2, 0], [0, 1, 2], [1]]
    joined = join(index, [select(batch, own) for batch, own in zip(batches, chosen, strict=True)])
    found = find(index, joined, Request(5, "or", scoring), [None] * len(index.segments), CPU)
    expected = [own[number] for own, numbers in zip(texts, chosen, strict=True) for number in numbers]
    assert as_frame(index.stored, found).equals(index.search(expected, 5, scoring="bm25+", engine="cpu"))


@pytest.mark.parametrize(
    ("query", "message"),
    [('to "be', "submit: query 0, character 4: this quote is not closed"), ("\ud800", "submit: query 0 is not text")],
)
def test_a_wrong_query_says_so_and_no_other_suffers(index: Index, query: str, message: str) -> None:
    with index.serve(deadline=np.float32(60.0), syntax="strict") as server:
        futures = [server.submit(one) for one in ["be", query, "to do"]]
    with pytest.raises(ValueError, match=message):
        futures[1].result(timeout=0)
    assert futures[0].result(timeout=0).equals(index.search("be"))
    assert futures[2].result(timeout=0).equals(index.search("to do"))


def test_a_closed_server_says_so(index: Index) -> None:
    server = index.serve()
    server.close()
    server.close()
    with pytest.raises(RuntimeError, match="the server is closed; start another one"):
        server.submit("be")


class Gate:
    """Lets the threads of servers wait before they search."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_for: int | None = None) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        find = find_module.find

        def waiting(index: Index, batch: Plan, *arguments: Any) -> Found:
            if threading.current_thread().name.startswith("tadoc-serve"):
                self.reached.set()
                assert self.opened.wait(timeout=60)
                if (np.bincount(batch.owners) == fail_for).any():
                    raise EngineUnavailableError("no luck")
            return find(index, batch, *arguments)

        monkeypatch.setattr(server_module, "find", waiting)


@pytest.fixture
def one_thread() -> Iterator[None]:
    with tadoc.Config(threads=1):
        yield


@pytest.mark.usefixtures("one_thread")
def test_closing_may_cancel_what_waits(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    server = index.serve(engine="cpu")
    first = server.submit("be")
    assert gate.reached.wait(timeout=60)
    others = [server.submit("be") for _ in range(50)]
    threading.Timer(0.1, gate.opened.set).start()
    server.close(cancel=True)
    assert first.result(timeout=0).equals(index.search("be"))
    assert all(future.cancelled() for future in others)


@pytest.mark.usefixtures("one_thread")
def test_a_callback_may_close_the_server(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(monkeypatch)
    server = index.serve(engine="cpu")
    futures = [server.submit("be") for _ in range(3)]
    assert gate.reached.wait(timeout=60)
    futures[0].add_done_callback(lambda _: server.close())
    gate.opened.set()
    for future in futures:
        assert future.result(timeout=60).equals(index.search("be"))
    server.close()
    assert not caplog.records  # where a callback raises it is logged
    with pytest.raises(RuntimeError, match="closed"):
        server.submit("be")


@pytest.mark.usefixtures("one_thread")
def test_queries_that_wait_beyond_their_deadline_are_missed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, now = Gate(monkeypatch), [0.0]
    monkeypatch.setattr(server_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with index.serve(deadline=0.3, engine="cpu") as server:
        first = server.submit("be")
        assert gate.reached.wait(timeout=60)
        second = server.submit("be")
        now[0] = 0.5
        gate.opened.set()
    assert first.result(timeout=0).equals(index.search("be"))
    with pytest.raises(DeadlineMissedError, match=r"no engine could answer the query within its deadline of 0\.3 s"):
        second.result(timeout=0)
    assert isinstance(second.exception(), TimeoutError)
    statistics = server.statistics()
    assert (statistics.answered, statistics.late, statistics.missed) == ({"cpu": 1}, 1, 1)
    assert statistics.latency["max"] == 0.5


@pytest.mark.usefixtures("one_thread")
def test_a_missed_query_is_reported_while_nothing_else_happens(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "predict", lambda *arguments: np.array([1000.0]))
    with index.serve(deadline=1.0, engine="cpu") as server:
        assert isinstance(server.submit("be").exception(timeout=60), DeadlineMissedError)


@pytest.mark.usefixtures("one_thread")
def test_an_error_arrives_in_its_own_future(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, fail_for=1)
    with index.serve(engine="cpu", syntax="strict") as server:
        futures = [server.submit(query) for query in ["to do", "to do", "be", "to do"]]
        wrong = server.submit(7)  # type: ignore[arg-type]
        no_text, open_quote = server.submit("\ud800"), server.submit('"to do')
        gate.opened.set()
    with pytest.raises(EngineUnavailableError, match="no luck"):
        futures[2].result(timeout=0)
    assert all(futures[i].result(timeout=0).equals(index.search("to do")) for i in (0, 1, 3))
    with pytest.raises(TypeError, match="a query is a string, not int"):
        wrong.result(timeout=0)
    with pytest.raises(ValueError, match="submit: query 0 is not text"):
        no_text.result(timeout=0)
    with pytest.raises(ValueError, match="submit: query 0, character 1: this quote is not closed"):
        open_quote.result(timeout=0)
    assert server.statistics().failed == 4


@pytest.mark.usefixtures("one_thread")
def test_a_query_that_nobody_has_taken_can_be_cancelled(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with index.serve(engine="cpu") as server:
        server.submit("be")
        assert gate.reached.wait(timeout=60)
        assert server.submit("be").cancel()
        gate.opened.set()
    assert server.statistics().answered == {"cpu": 1}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"deadline": 0}, ValueError, "deadline=0 must be above 0"),
        ({"deadline": math.nan}, ValueError, "deadline=nan must be above 0"),
        ({"deadline": "soon"}, TypeError, "deadline='soon' must be a number"),
        ({"filter": "x"}, TypeError, "serve: filter must be"),
        ({"mode": "xor"}, ValueError, "mode='xor'"),
        ({"k": -1}, ValueError, "k"),
        ({"engine": "tpu"}, ValueError, "engine='tpu'"),
        ({"scoring": "tf"}, ValueError, "scoring='tf'"),
        ({"filter": "x"}, TypeError, "serve: filter"),
    ],
)
def test_wrong_arguments(index: Index, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        index.serve(**arguments)


def test_an_index_without_documents_can_be_served(engine: str) -> None:
    empty = tadoc.build_index(pl.Series("text", [], pl.String).tadoc.compress())
    with empty.serve(engine=engine) as server:
        assert server.submit("be").result(timeout=60).is_empty()
