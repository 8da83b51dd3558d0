"""Where models lie: the catalogue, its sources, and what a folder holds. No torch, no Qt."""
