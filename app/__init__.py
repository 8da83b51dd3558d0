"""Foretoken: a desktop playground for speculative decoding."""

__version__ = "0.1.0"
