"""Set-ups in the words of other programs: theirs read here, ours written for them."""
