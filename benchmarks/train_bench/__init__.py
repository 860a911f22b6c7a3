"""Training speed beside other tools: the same pairs, pieces, model shape, dropout and threads.

`task` says what is trained and `text` writes it down for all candidates; `environments` installs
the other tools; `candidates` runs each one for some steps, in a process that `watch` samples;
`measurement` turns steps into figures, `tables` shows them beside each other, and `ending` says
where they come from. The scripts in
`peers` run in the environments of the other tools and import nothing of this project.
"""
