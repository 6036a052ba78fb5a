"""Make room and remove content for good: checkpoints made, content erased, what is due done."""
