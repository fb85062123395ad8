"""Makes rows and rules ready to be traversed, and chooses the way: from the rows down or from the words up."""
