"""Compiled loops. They know nothing of privacy or papers: contiguous arrays in, arrays out."""
