"""The packed form: one self-contained row for each grammar, in memory and in files."""
