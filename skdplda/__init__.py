"""Differentially private topic models that drop into scikit-learn."""
