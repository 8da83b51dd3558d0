"""The other process: it alone imports torch and owns the models."""
