"""The object that apps hold, and what wires the other parts together."""
