"""The answers, a module each: verdict, sentence, figures and advice."""
