"""What training costs with more workers, hosts, steps, pairs and drawn subwords.

Each of `workers`, `nodes`, `long_run`, `corpus_size` and `subwords` is a section: variants of one
run, measured one after the other in each round. `bench` holds what they share and starts
`dragoman train`; `corpora` writes prepared data of any size; `loading` is a script that measures
opening, planning and loading in a process of its own. `figures` turns events and samples into
figures, and `tables` shows them with ratios. Both are pure.
"""
