"""The parts of scripts/debian_graph.py: lists -> edges or relations, labels, splits, features -> files."""
