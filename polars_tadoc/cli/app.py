"""``tadoc``: parses the command, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

import polars as pl
from cyclopts import App, CycloptsError
from cyclopts.panel import CycloptsPanel

import polars_tadoc as tadoc
from polars_tadoc.cli import cleaning, compressing, counting, filtering, machine, searching
from polars_tadoc.cli.reading import STANDARD
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import printable, say

EXPECTED = (tadoc.errors.TadocError, OSError, ValueError, TypeError, ImportError)

DONE, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141
"""Exit codes; 1 means that a search found nothing, as of grep."""

_PIPE_CLOSED = "(os error 32)"
"""Part of Polars' error when the reader of a pipe has closed it."""

EPILOGUE = """Input: Parquet (plain or compressed), CSV, TSV, NDJSON, Arrow, text (a row
per line), XML; files, folders, patterns, or - for standard input.
Exit codes: 0 done, 1 nothing found (search, twigs), 2 an error,
130 interrupted."""

app = App(
    name="tadoc",
    help="Text analytics on files: plain text, and columns that are grammar-compressed.",
    help_epilogue=EPILOGUE,
    help_format="plaintext",
    version=machine.version,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
    error_formatter=lambda error: CycloptsPanel(printable(str(error))),
)


def _examples(command: Callable[..., object]) -> str:
    """Return the examples of a command's docstring, for its help."""
    lines = (inspect.getdoc(command) or "").partition("Examples\n--------\n")[2].splitlines()
    return "Examples:\n" + "\n".join(f"  {line}" for line in lines if line) + "\n\n" + EPILOGUE


for command in (
    compressing.compress,
    compressing.decompress,
    compressing.info,
    counting.count,
    counting.grams,
    searching.search,
    cleaning.repeats,
    filtering.twigs,
    machine.doctor,
    machine.calibrate,
    machine.warmup,
):
    app.command(command, sort_key=len(list(app)), help_epilogue=_examples(command))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of the command line.

    Parameters
    ----------
    arguments
        The command and its arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0 done, 1 nothing found, 2 an error, 130 interrupted, 141 the reader of a pipe closed it.

    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            given = sys.argv[1:] if arguments is None else arguments
            tokens = [STANDARD if one == "-" else one for one in given]
            command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=True)
            with bound.arguments.get("running", Running()).settings():
                code = command(*bound.args, **bound.kwargs)
            sys.stdout.flush()
        except CycloptsError:  # it has said what is wrong
            return FAILED
        except KeyboardInterrupt:
            say("tadoc: interrupted")
            return INTERRUPTED
        except (*EXPECTED, pl.exceptions.PolarsError) as error:
            if isinstance(error, BrokenPipeError) or _PIPE_CLOSED in str(error):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it at its end
                return PIPE_CLOSED
            say(f"tadoc: {_message(error)}")
            return FAILED
    return code if isinstance(code, int) else DONE


def _message(error: Exception) -> str:
    """Return the text of an error, without quotes (KeyError) and without a plan (Polars)."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if text == "invalid utf8":  # all that Polars says of lines
        return "the input is not valid UTF-8; convert it, for example with iconv -f latin1 -t utf-8"
    return text.partition("\n\nResolved plan")[0] or type(error).__name__


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"tadoc: warning: {message}")
