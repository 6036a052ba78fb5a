"""Write memories for people and other programs, in clear text: piece by piece, so that a vault is never held twice."""
