"""The Transformer, its loss and its size.

Shapes stand at the end of tensor names: B sentences, S source positions, T target positions,
L positions of either, N target tokens of a batch without padding, D width, H heads, K width of a
head, F filter, V vocabulary, R rows of a beam (B times beam). `hidden_BTD` has three dimensions.
"""
