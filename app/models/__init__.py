"""Models at work: weights, caches, tokenizers, and the machine they run on. Torch, no Qt."""
