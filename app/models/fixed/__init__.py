"""Passes of fixed shape: padded to a few widths, over memory that stays where it is."""
