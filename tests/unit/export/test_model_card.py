from dragoman.evaluation.scores import ScoredSplit
from dragoman.export.model_card import CardFacts, model_card

SCORED = ScoredSplit(
    split="test",
    steps=[10, 20],
    sentences=1000,
    beam=4,
    bleu=31.26,
    chrf=55.5,
    bleu_signature="nrefs:1|case:mixed",
    chrf_signature="nrefs:1",
    bleu_low=30.1,
    bleu_high=32.4,
)
FACTS = CardFacts(
    name="small",
    source_language="en",
    target_language="de",
    parameters=1_234_567,
    architecture="Transformer, 3 + 3 layers",
    steps=[10, 20],
    passport=None,
    scores=[SCORED],
    answers=[],
    license="",
    version="0.1.0",
)


def test_scores_come_with_interval_and_signature():
    card = model_card(FACTS)
    assert "31.3 (30.1 to 32.4)" in card
    assert "nrefs:1\\|case:mixed" in card
    assert "1,234,567" in card
    assert "10 + 20" in card


def test_what_is_not_known_is_said_to_be_unknown():
    card = model_card(FACTS._replace(scores=[]))
    assert "Not evaluated" in card
    assert "unknown" in card
    assert "license:" not in card.split("# small")[0]
    odd = FACTS._replace(source_language="no", license="mine: ask\nme")
    assert '- "no"\n- de\n' in model_card(odd)
    assert 'license: "mine: ask\\nme"\n---' in model_card(odd)
    assert "license: cc-by-4.0" in model_card(FACTS._replace(license="cc-by-4.0")).split("# ")[0]


def test_every_test_set_has_a_row_with_its_own_interval():
    news = SCORED.model_copy(update={"split": "news", "bleu": 20.0, "bleu_low": 19.0})
    card = model_card(FACTS._replace(scores=[SCORED, news]))
    assert "| test | 1,000 |" in card
    assert "| news | 1,000 | 10 + 20 | 4 | 20.0 (19.0 to 32.4) |" in card
