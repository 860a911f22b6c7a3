"""Translation quality by training minute: our recipe beside a plain loop of Hugging Face Marian.

`task` says what both train and writes it down for the loop; `candidates` starts the two and reads
what they record; `turns` lets one of them run at a time and keeps the clock of each; `curve` turns
records into BLEU by minute, `scoring` scores the test set, and `tables` shows all of it. The
scripts in `peers` run in environments of their own and import nothing of this project.
"""
