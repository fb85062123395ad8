"""Words and their ids in a succinct trie."""
