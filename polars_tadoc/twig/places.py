"""Allocates ranges of bits in a node set for twigs."""

from __future__ import annotations

from bisect import bisect_left, insort

HALF = 32
"""Bits of half a word. A twig with at most this many nodes does not cross a half."""

WORD = 64

_FULL = (1 << HALF) - 1


class Places:
    """Allocator of bits in a node set.

    A twig of at most 32 nodes gets a range within half a word, by best fit: in the half whose longest free range is the
    shortest that is large enough. A larger twig starts at an unused word.

    Attributes
    ----------
    words
        Number of words that hold all twigs.

    """

    def __init__(self) -> None:
        self.words = 0
        self._whole = _FreeWords()
        self._used: dict[int, int] = {}  # used bits by half, for words whose halves are allocated separately
        self._by_room: list[dict[int, None]] = [{} for _ in range(HALF + 1)]  # their free parts, by length

    def take(self, size: int) -> int:
        """Allocate ``size`` consecutive bits and return the first."""
        if size > HALF:
            word, last = self._take_words(-(-size // WORD)), (size - 1) // WORD
            rest = size - last * WORD
            self._open(word + last, (1 << rest) - 1)
            return word * WORD
        half = next((next(iter(halves)) for halves in self._by_room[size:] if halves), None)
        if half is None:
            half = 2 * self._take_words(1)
            self._open(half // 2, 0)
        used = self._used[half]
        first = _first_run(used, size)
        self._set(half, used | ((1 << size) - 1) << first)
        return half * HALF + first

    def give(self, first: int, size: int) -> None:
        """Free the bits that :meth:`take` returned for the same size."""
        half = first // HALF
        if size > HALF:
            word, last = first // WORD, (size - 1) // WORD
            if last:
                self._give_words(word, last)
            half = 2 * (word + last)
            rest = (1 << size - last * WORD) - 1
            self._set(half, self._used[half] & ~rest)
            self._set(half + 1, self._used[half + 1] & ~(rest >> HALF))
        else:
            self._set(half, self._used[half] & ~(((1 << size) - 1) << first % HALF))
        lower = half & ~1
        if not self._used[lower] and not self._used[lower + 1]:
            for empty in (lower, lower + 1):
                del self._used[empty]
                del self._by_room[HALF][empty]
            self._give_words(lower // 2, 1)

    def _open(self, word: int, used: int) -> None:
        """Allocate the halves of a word separately from now on; the lower half first."""
        for half, bits in ((2 * word, used & _FULL), (2 * word + 1, used >> HALF)):
            self._used[half] = bits
            self._by_room[_room(bits)][half] = None

    def _set(self, half: int, used: int) -> None:
        del self._by_room[_room(self._used[half])][half]
        self._used[half] = used
        self._by_room[_room(used)][half] = None

    def _take_words(self, count: int) -> int:
        word = self._whole.take(count)
        if word is None:
            word = self.words
            self.words += count
        return word

    def _give_words(self, first: int, count: int) -> None:
        self._whole.give(first, count)
        self.words = self._whole.cut(self.words)


class _FreeWords:
    """Unused ranges of words, by length; no two are adjacent."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}  # end by first word
        self._firsts: dict[int, int] = {}  # first word by end
        self._by_length: dict[int, dict[int, None]] = {}
        self._lengths: list[int] = []

    def take(self, count: int) -> int | None:
        """Return the first word of the shortest range of at least ``count`` words, or None."""
        place = bisect_left(self._lengths, count)
        if place == len(self._lengths):
            return None
        first = next(iter(self._by_length[self._lengths[place]]))
        end = self._remove(first)
        if first + count < end:
            self._add(first + count, end)
        return first

    def give(self, first: int, count: int) -> None:
        """Free words, and merge them with adjacent free ranges."""
        end = first + count
        if end in self._ends:
            end = self._remove(end)
        if first in self._firsts:
            first = self._firsts[first]
            self._remove(first)
        self._add(first, end)

    def cut(self, words: int) -> int:
        """Drop the free range at the end of all words; return the remaining number of words."""
        first = self._firsts.get(words)
        if first is None:
            return words
        self._remove(first)
        return first

    def _add(self, first: int, end: int) -> None:
        self._ends[first], self._firsts[end] = end, first
        length = end - first
        if length not in self._by_length:
            self._by_length[length] = {}
            insort(self._lengths, length)
        self._by_length[length][first] = None

    def _remove(self, first: int) -> int:
        end = self._ends.pop(first)
        del self._firsts[end]
        length = end - first
        del self._by_length[length][first]
        if not self._by_length[length]:
            del self._by_length[length]
            del self._lengths[bisect_left(self._lengths, length)]
        return end


def _room(used: int) -> int:
    """Return the length of the longest free range in half a word."""
    free, length = ~used & _FULL, 0
    while free:
        free &= free << 1
        length += 1
    return length


def _first_run(used: int, size: int) -> int:
    """Return the lowest bit of a free range of ``size`` bits in half a word; one must exist."""
    free, length = ~used & _FULL, 1
    while length < size:  # bit b of free: bits b to b + length - 1 are free
        step = min(length, size - length)
        free &= free >> step
        length += step
    return (free & -free).bit_length() - 1
