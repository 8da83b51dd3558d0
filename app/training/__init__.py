"""Teaches a draft: a target writes, a head learns to guess it."""
