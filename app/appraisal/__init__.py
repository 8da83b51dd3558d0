"""What a run is worth: its costs, its prediction and account, its verdict; no Qt, no torch."""
