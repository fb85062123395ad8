"""``df.tadoc``: analytics over the rows of a frame."""

from __future__ import annotations

from polars_tadoc.namespaces.dataframe.cleaning import FrameCleaning
from polars_tadoc.namespaces.dataframe.columns import FrameColumns
from polars_tadoc.namespaces.dataframe.counting import FrameCounting
from polars_tadoc.namespaces.dataframe.files import FrameFiles
from polars_tadoc.namespaces.dataframe.search import FrameSearch


class TadocFrame(FrameColumns, FrameFiles, FrameCounting, FrameSearch, FrameCleaning):
    """Grammar compression and analytics on a frame.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be or not", "to do"]}).tadoc.compress("text")
    >>> df.filter(pl.col("year") > 1).tadoc.word_count("text").rows()
    [('do', 1), ('to', 1)]

    """
