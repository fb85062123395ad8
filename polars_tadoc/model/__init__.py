"""The column and what it is made of: vocabulary, grammar, payload, corpus."""
