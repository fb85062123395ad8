"""The packed form: one self-contained row per grammar, in memory and in files."""
