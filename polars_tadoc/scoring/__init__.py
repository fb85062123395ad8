"""How words and documents are weighed: BM25 and TF-IDF."""

from polars_tadoc.scoring.bm25 import Scoring as Scoring  # pickles of 0.1 name it here
