"""What is made of many memories: by week, by topic, by pattern (memory-model §4). Decisions only, no I/O."""
