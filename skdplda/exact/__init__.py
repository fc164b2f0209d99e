"""Fits without noise: the same queries, answered exactly. They promise nothing."""

__all__: list[str] = []
