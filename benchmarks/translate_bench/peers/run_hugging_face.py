"""Translates with Hugging Face: python run_hugging_face.py JOB. Runs in an environment with it."""

from types import SimpleNamespace

from serving import Search, padded, serve
from transformers import AutoModelForSeq2SeqLM


def open_search(job: SimpleNamespace) -> Search:
    model = AutoModelForSeq2SeqLM.from_pretrained(job.hugging_face).eval()

    def search(sentences: list[list[int]], limit: int, beam: int) -> list[list[int]]:
        source = padded(sentences, job.padding)
        of_a_beam = {"length_penalty": job.length_penalty, "early_stopping": True}
        found = model.generate(
            input_ids=source,
            attention_mask=(source != job.padding).long(),
            num_beams=beam,
            max_new_tokens=limit,
            **(of_a_beam if beam > 1 else {}),
        )
        # The first piece is the one that starts a translation.
        ids: list[list[int]] = found[:, 1:].tolist()
        return ids

    return search


if __name__ == "__main__":
    serve(open_search)
