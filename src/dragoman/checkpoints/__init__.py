"""Checkpoints: whole or not there, verified when read, without pickle.

checkpoints/step-00012000/
  model.safetensors       the weights
  optimizer.safetensors   Adam's mean and square for each of them
  state.json              how far the run is; the model's shape and languages
  tokenizer.model         so that a checkpoint can translate on its own
  manifest.json           size and SHA-256 of each of these
checkpoints/latest, best  links
"""
