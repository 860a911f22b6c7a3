"""What holds the steps of a run back."""
