from typing import Annotated

import typer

from dragoman.cli.arguments import Average, Beam, CheckpointName, Run


def evaluate(
    run: Run,
    split: Annotated[str, typer.Option(help="test or validation.")] = "test",
    checkpoint: CheckpointName = "best",
    average: Average = 1,
    beam: Beam = None,
) -> None:
    """Translate a held-out set and score it with sacreBLEU.

    Example: dragoman evaluate runs/demo --split test
    """
    from dragoman.config import load_config
    from dragoman.console import Progress, say
    from dragoman.decoding.trained import load_trained
    from dragoman.decoding.translator import translate
    from dragoman.distributed.group import pick_device
    from dragoman.evaluation.metrics import score
    from dragoman.rundir import RunDir, write_json, write_sentences
    from dragoman.shards.passport import PreparedData

    directory = RunDir(run)
    device = pick_device("auto")
    trained = load_trained(directory, checkpoint, average, device)
    config = load_config(directory.config)
    sources, references = PreparedData.open(config.prepared_folder).text(split)
    settings = config.decoding.model_copy(update={"beam": beam} if beam else {})
    with Progress(f"translating {split}", unit="sentences", total=len(sources)) as progress:
        translations = translate(
            *(trained.model, trained.tokenizer, sources, settings, device),
            done=progress.advance,
            longest=config.data.max_length,
        )
    scores = score(translations, references, config.data.target_language)
    # So that `dragoman compare` can test sentence by sentence whether another run is better.
    write_sentences(directory.evaluation_text(split, "translations"), translations)
    write_sentences(directory.evaluation_text(split, "references"), references)
    samples = zip(sources, translations, references, strict=True)
    write_json(
        directory.evaluation(split),
        {
            "split": split,
            "steps": trained.steps,
            "sentences": len(sources),
            "beam": settings.beam,
            "length_penalty": settings.length_penalty,
            **scores._asdict(),
            "samples": [
                {"source": source, "translation": translation, "reference": reference}
                for source, translation, reference in samples
            ][:20],
        },
    )
    steps = " + ".join(f"{step:,}" for step in trained.steps)
    say(f"{split}, {len(sources):,} sentences, beam {settings.beam}, weights of step {steps}:")
    interval = f"({scores.bleu_low:.1f} to {scores.bleu_high:.1f})"
    say(f"  BLEU {scores.bleu:.1f} {interval}  {scores.bleu_signature}")
    say(f"  chrF {scores.chrf:.1f}  {scores.chrf_signature}")
