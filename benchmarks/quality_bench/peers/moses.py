"""Brings lines into the form in which Multi30k is published: data/task1/tok/*.lc.norm.tok.*

    python moses.py LANGUAGE < text > tokens

As scripts/task1-tokenize.sh of github.com/multi30k/dataset makes them: lowercase.perl, then
normalize-punctuation.perl -l LANGUAGE, then tokenizer.perl -l LANGUAGE, which splits no hyphens
(there is no -a) and escapes what XML reserves (there is no -no-escape). sacremoses ports the three.
"""

import sys

from sacremoses import MosesPunctNormalizer, MosesTokenizer


def main() -> None:
    language = sys.argv[1]
    # penn: sacremoses' name for what the script does unless it is called with -penn.
    normalizer = MosesPunctNormalizer(lang=language, penn=True, perl_parity=True)
    tokenizer = MosesTokenizer(lang=language)
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in sys.stdin:
        normal = normalizer.normalize(line.removesuffix("\n").lower())
        tokens = tokenizer.tokenize(normal, aggressive_dash_splits=False, escape=True)
        print(" ".join(tokens))


if __name__ == "__main__":
    main()
