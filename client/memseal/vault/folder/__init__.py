"""What lies in a vault's folder: read, checked and opened."""
