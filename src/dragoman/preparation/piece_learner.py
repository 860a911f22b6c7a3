"""The process that learns pieces: settings and lines come in, a SentencePiece model goes out.

Standard input has the settings as JSON in its first line, then the text. Standard output gets the
model, or with the exit code of a user's error what is wrong; SentencePiece's log is on standard
error.
"""

import sys

from dragoman.config import TokenizerSettings
from dragoman.errors import UserError
from dragoman.tokenizer import learn_tokenizer


def main() -> int:
    given, answer = sys.stdin.buffer, sys.stdout.buffer
    settings = TokenizerSettings.model_validate_json(given.readline())
    texts = (line.removesuffix(b"\n").decode() for line in given)
    try:
        answer.write(learn_tokenizer(texts, settings, is_logged=True).model)
    except UserError as error:
        answer.write(str(error).encode())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
