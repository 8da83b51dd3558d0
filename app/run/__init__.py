"""What a run is: its settings, its events, its record and its numbers. No torch, no Qt."""
