"""A vault as a whole: checked, repaired, bundled, joined with another branch of itself."""
