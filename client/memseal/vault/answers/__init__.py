"""What a question finds, what of it is given out, and what is kept of that."""
