"""Kernels that encode and decode postings."""

from polars_tadoc.kernels.postings.coded import Lists as Lists
from polars_tadoc.kernels.postings.coded import Postings as Postings
from polars_tadoc.kernels.postings.coded import Queries as Queries
from polars_tadoc.kernels.postings.coded import Stream as Stream
