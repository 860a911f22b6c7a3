"""The form in which many papers report BLEU: lower-cased text in tokens of Moses. Without torch.

Figures in this form are higher or lower than sacreBLEU's own by a point or so and cannot be
compared with them. It is the form of the scripts of the Multi30k corpus: lowercase.perl, then
normalize-punctuation.perl, then tokenizer.perl, which splits no hyphens and escapes what XML
reserves. sacremoses ports the three.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.errors import UserError
from dragoman.evaluation.metrics import bleu_of_tokens
from dragoman.evaluation.scoring import MetricScore, measured
from dragoman.installation import install_command


def published_bleu(
    translations: Sequence[str], references: Sequence[str], target_language: str
) -> MetricScore:
    """Returns BLEU of both texts in tokens of Moses."""
    moses = _moses()
    # penn: sacremoses' name for what the script does unless it is called with -penn.
    normalizer = moses.MosesPunctNormalizer(lang=target_language, penn=True, perl_parity=True)
    tokenizer = moses.MosesTokenizer(lang=target_language)

    def tokens(lines: Sequence[str]) -> list[str]:
        return [
            " ".join(
                tokenizer.tokenize(
                    normalizer.normalize(line.lower()), aggressive_dash_splits=False, escape=True
                )
            )
            for line in lines
        ]

    return measured(bleu_of_tokens(), tokens(translations), tokens(references))


def _moses() -> Any:
    try:
        import sacremoses  # noqa: PLC0415
    except ImportError:
        raise UserError(
            "the published form needs the tokenizer of Moses; install it with: "
            f"{install_command('moses')}"
        ) from None
    return sacremoses
