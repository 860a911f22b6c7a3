"""What the curves of a run say about its learning."""
