"""What `foretoken selftest` tries: torch and Qt in processes of their own, one line a check."""
