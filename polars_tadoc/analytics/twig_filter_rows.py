"""Which of many XPath queries each row matches, as a column beside others."""

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
"""What ``as_struct=`` means, for documentation."""


class FormOption(TypedDict, total=False):
    """What an answer looks like."""

    as_struct: Annotated[bool, Default(False)]


class TwigFilterRowsOptions(FormOption, twig_filter.TwigFilterOptions, total=False):
    """Options of the calls on series and expressions."""


@dataclass(frozen=True)
class TwigFilterRowsRequest:
    """What is asked of each row, checked when it is made."""

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
        """Answer for a String column or a compressed one; errors as for :func:`polars_tadoc.twig_filter`."""
        form = flags if self.as_struct else name_lists
        return form(self.filter.matches(column), self.filter.names, column.name, len(column))

    def run_part(self, column: pl.Series) -> pl.Series:
        """Do the same for what Polars hands over, which may be a part of a column."""
        try:
            return self.run(column)
        except InvalidXmlError as error:
            raise InvalidXmlError(
                f"{error}; the row is counted in the {len(column):,} that Polars handed over together"
            ) from None
