"""What is compared: lanes, their order and their repetitions."""
