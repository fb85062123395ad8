"""The column and its parts: vocabulary, grammar, payload, corpus."""
