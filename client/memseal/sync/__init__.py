"""What to ask a remote next, and what to make of its answers: no network, no files, no clock."""
