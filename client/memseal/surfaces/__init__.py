"""The vault for other programs and for people: command line, importers."""
