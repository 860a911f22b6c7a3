"""How `translate.py` measures: candidates in this process and others in processes of their own.

`peers/` holds what runs in the environments of other tools, which `train_bench.environments`
installs. They get the run's own weights, so that all candidates do the same work.
"""
