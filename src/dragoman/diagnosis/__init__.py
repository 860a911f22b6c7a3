"""What the records of a run say about it: its directory comes in, findings go out. No torch.

questions   one table of all questions, and the diagnosis of a run
answers     a module for each question: verdict, words and advice
findings    what an answer consists of
phrasing    how figures become words
run         facts, each derived once, without opinions
speed       what holds a step back, and since when
learning    what losses and BLEU say about convergence and overfitting
watch       findings while a run goes on
"""
