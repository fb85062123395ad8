"""Automata over the text of rows: words and gaps, each rule once per state."""
