"""One file per analytic: a partial result on one corpus, and a merge of partial results."""
