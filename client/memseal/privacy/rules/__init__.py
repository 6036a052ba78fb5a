"""Rules that find personal data by its shape, its checksum and the words around it."""
