"""What documents contribute to a sum: the hidden half of a round, model by model. See `skdplda.rounds.EStep`."""

__all__: list[str] = []
