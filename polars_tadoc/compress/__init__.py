"""From a String column to a grammar and its rows: tokenize, batch RePair, prune."""
