"""How tokens are made: the loop, its drivers, the proposers and the verifiers. Torch, no Qt."""
