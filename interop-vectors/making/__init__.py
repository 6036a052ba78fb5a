"""The parts of the generator: what is fixed, what is frozen, and one module for each group of cases."""
