import sentencepiece

from dragoman.export.sentencepiece_model import BPE, CONTROL, UNIGRAM, UNKNOWN, read_piece_model


def test_pieces_scores_and_kinds_are_those_that_sentencepiece_reads(content):
    read = read_piece_model(content.tokenizer.model)
    known = sentencepiece.SentencePieceProcessor(model_proto=content.tokenizer.model)
    assert [piece.text for piece in read.pieces] == content.tokenizer.pieces
    for number, piece in enumerate(read.pieces):
        assert piece.score == known.get_score(number)
        assert (piece.kind == CONTROL) == known.is_control(number)
        assert (piece.kind == UNKNOWN) == known.is_unknown(number)
    assert read.model_type in (UNIGRAM, BPE)
    assert read.character_map
    assert read.adds_prefix
    assert read.removes_spaces
