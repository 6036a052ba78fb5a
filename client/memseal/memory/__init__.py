"""What a memory is and how it changes: values and rules, no I/O."""
