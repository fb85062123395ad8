"""The XPath queries that each row matches, as a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self, TypedDict, Unpack

import polars as pl

from polars_tadoc.analytics import twig_filter
from polars_tadoc.errors import InvalidXmlError
from polars_tadoc.execute.twig_matches import flags, name_lists
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.twig.twig_set import TwigSet

AS_STRUCT = "False: a list of the names of each row's queries. True: a struct with a Boolean for each query."
"""Meaning of ``as_struct=``, for documentation."""
NAMES = (
    "``List(String)``, names in the order of the set, or with ``as_struct=True`` a ``Struct`` of ``Boolean`` fields."
)
"""The result, for documentation."""


class FormOption(TypedDict, total=False):
    """Form of the result."""

    as_struct: Annotated[bool, Default(False)]


class TwigFilterRowsOptions(FormOption, twig_filter.TwigFilterOptions, total=False):
    """Options of the calls on series and expressions."""


@dataclass(frozen=True)
class TwigFilterRowsRequest:
    """The checked arguments of a call."""

    filter: twig_filter.TwigFilterRequest
    as_struct: bool

    @classmethod
    def from_arguments(
        cls,
        queries: Mapping[str, str] | TwigSet,
        *,
        as_struct: bool = False,
        **options: Unpack[twig_filter.TwigFilterOptions],
    ) -> Self:
        """Check the arguments; errors as for :func:`polars_tadoc.twig_filter`."""
        require_bool("as_struct", as_struct, twig_filter.TwigFilterRequest.name)
        return cls(twig_filter.TwigFilterRequest.from_arguments(queries, **options), as_struct)

    @property
    def dtype(self) -> pl.DataType:
        """Type of the answer."""
        if self.as_struct:
            return pl.Struct(dict.fromkeys(self.filter.names, pl.Boolean))
        return pl.List(pl.String)

    def run(self, column: pl.Series) -> pl.Series:
        """Match the rows of a String or compressed column; errors as for :func:`polars_tadoc.twig_filter`."""
        form = flags if self.as_struct else name_lists
        return form(self.filter.matches(column), self.filter.names, column.name, len(column))

    def run_part(self, column: pl.Series) -> pl.Series:
        """Do the same for a chunk of a column."""
        try:
            return self.run(column)
        except InvalidXmlError as error:
            raise InvalidXmlError(
                f"{error}; row numbers count within the {len(column):,} rows that Polars passed together"
            ) from None
