#!/usr/bin/env python3
"""Writes bleu.tsv: corpora with the numbers of sacreBLEU, and texts with their 13a tokens.

Needs `pip install sacrebleu`. Lines of the file:

    corpus <TAB> lines <TAB> score <TAB> brevity penalty <TAB> output tokens <TAB> reference tokens
           <TAB> 4 correct <TAB> 4 total <TAB> 4 precisions      then as many lines `output <TAB> reference`
    tokens <TAB> text <TAB> tokens
"""
import pathlib
import random

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

draw = random.Random(20)
WORDS = ["the", "cat", "sat", "on", "a", "mat", "U.S.", "3.14", "1,000", "well-known", "e.g.", "Mr.",
         "2-3", "$5.20", "it's", "(so)", "naïve", "„ja“", "日本", "100%", "&amp;", "&quot;x&quot;", "—", "x-",
         "\u00a0", "a\u2003b", "...", "?!", "#1", "C++", "9.", ".5", ",,", "5-,", "<skipped>", "don't"]


def sentence(longest):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest)))


def near(text, rate):
    words = [draw.choice(WORDS) if draw.random() < rate else w for w in text.split(" ")]
    return " ".join(w for w in words if draw.random() > rate / 3)


def corpora():
    for lines, longest, rate in ((40, 20, 0.2), (10, 8, 0.5), (3, 3, 0.3), (20, 30, 0.9), (5, 12, 0)):
        references = [sentence(longest) for _ in range(lines)]
        yield [near(r, rate) for r in references], references
    yield ["The cat sat on the mat."], ["The cat sat on the mat."]
    yield ["the the the the the the the"], ["the cat is on the mat"]  # Papineni's example: 2 of 7
    yield ["the cat"], ["the cat"]  # no trigram: 0
    yield ["a b c d e"], ["v w x y z"]  # no match: 0
    yield ["", ""], ["the cat", "the mat"]  # no output: 0
    yield ["a cat sat here today .", ""], ["a cat sat there .", "gone"]  # no fourgram matches: smoothed
    yield ["a x b y c z", "p"], ["a b c", "q"]  # two orders smoothed


def main():
    out = []
    for outputs, references in corpora():
        b = sacrebleu.corpus_bleu(outputs, [references], force=True)
        numbers = [len(outputs), repr(b.score), repr(b.bp), b.sys_len, b.ref_len, *b.counts, *b.totals,
                   *(repr(p) for p in b.precisions)]
        out.append("\t".join(["corpus", *map(str, numbers)]))
        out += [f"{o}\t{r}" for o, r in zip(outputs, references)]
    tokens = Tokenizer13a()
    texts = [sentence(12) for _ in range(20)]
    texts += ["".join(draw.choice(" .,-09az'&<\u00e9\u3000\u2028\x1f\x85") for _ in range(40)) for _ in range(40)]
    out += [f"tokens\t{t}\t{tokens(t.rstrip())}" for t in texts]
    path = pathlib.Path(__file__).with_name("bleu.tsv")
    path.write_bytes(("\n".join(out) + "\n").encode())


main()
