"""What a conversation says about its user that is worth proposing as a memory (lifecycle.md §6)."""
