"""Attacks: what an adversary makes of what was released. They know models through arrays and traces only."""

from skdplda.attacks._trace import TopicTraceAttack

__all__ = ["TopicTraceAttack"]
