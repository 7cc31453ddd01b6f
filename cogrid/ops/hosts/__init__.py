"""What an operator does to the machines of the fleet, all at once."""
