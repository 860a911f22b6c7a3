"""Checkpoints: whole or not there, verified when read, without pickle.

checkpoints/step-00012000/
  model.safetensors       the weights that translate: an average of them, if the run keeps one
  optimizer.safetensors   the optimizer's state, and then the weights that train
  state.json              how far the run is; the model's shape and languages
  tokenizer.model         so that a checkpoint can translate on its own
  manifest.json           size and SHA-256 of each of these; of which step and whose they are
checkpoints/latest, best  links
checkpoints/.replaced-step-00012000
                          the old one while a new one of the same step takes its place
checkpoints/.unfinished-*, .removed-*
                          half a save and half a removal; the next save sweeps them away
"""
