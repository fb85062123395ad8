"""Fuzzing of all that comes from outside: one target for each form of input, held to what the package promises.

``python -m tests.fuzz TARGET --seconds N`` runs one of them under Atheris, ``all`` runs them in turn. An input of a
text target is the text. That of a container's target is a list of edits (:mod:`tests.fuzz.script`): they are made to
the arrays within a sound sample, which is then written with right sizes, digests and checksums, so that what is behind
these is reached at all. ``corpus/`` holds the inputs worth keeping, one Python literal of bytes a line.
"""
