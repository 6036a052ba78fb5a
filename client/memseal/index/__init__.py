"""The engines that find memories among those opened in RAM."""
