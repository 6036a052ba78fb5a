"""What a checkpoint covers and holds, and how the floor that names it is taken over."""
