"""Lines inside rows: where they end, and those that repeat whole."""
