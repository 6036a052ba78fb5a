"""What is personal in a text, what stands in for it, and the way back: decisions without I/O."""
