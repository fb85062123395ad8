"""Files of every kind that were damaged: the same answer, or an error by name; some hundred of each, more by hand.

``python -m tests.fuzz.mutations --count 100000`` does as many as one likes, in processes of their own.
"""

from __future__ import annotations

import random

import pytest

from tests.fuzz.mutation_kind import CHECKSUMMED, FORGED, PLAIN, UNVERIFIED
from tests.fuzz.mutation_kinds import KINDS, samples
from tests.fuzz.mutations import campaign, mutated, run

COUNT = 40


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_damaged_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(name, 1, range(COUNT))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("finding")]
    assert not said
    assert sum(found.values()) == COUNT
    assert found["refused"] > COUNT // 4
    assert not found["other"] or KINDS[name].promise != CHECKSUMMED


@pytest.mark.slow
def test_a_campaign_names_what_it_finds() -> None:
    """Each kind has a promise, and processes of their own report their counts."""
    assert {kind.promise for kind in KINDS.values()} > {CHECKSUMMED, PLAIN, UNVERIFIED, FORGED}
    found, findings = campaign("twig_set", 5, 1)
    assert not findings
    assert sum(found.values()) == 5


def test_mutations_change_files() -> None:
    (files, _), *_ = samples("dictionary")
    chance = random.Random(3)
    changed = [mutated(chance, files, [files])[0] for _ in range(50)]
    assert sum(one != files for one in changed) > 40
