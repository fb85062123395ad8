"""The ``tadoc`` accessors of Polars' DataFrame, LazyFrame, Series and Expr: thin, each call one line away from the functions."""
