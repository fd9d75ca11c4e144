#!/usr/bin/env python3
"""Makes pairs of sentences from the translated messages of the programs that are installed:

    python3 tests/bench/messages.py FOLDER [--language de]

writes FOLDER/train.tsv, valid.tsv and test.tsv, of English messages and their translations, from the
catalogues in /usr/share/locale. Most of them come, on Debian, from postgresql, git, gnupg, krb5, libc6,
coreutils, glib and dpkg. Messages of at least three words and one line are taken, each once; names of
languages, countries and keyboards are not.
"""
import argparse
import gettext
import glob
import os
import random

NOT = ("iso_", "xkey", "shared-mime")
HELD, LONGEST_SOURCE, LONGEST_TARGET = 1000, 100, 130


def pairs_of(path):
    try:
        with open(path, "rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog
    except Exception:  # a catalogue without an encoding or with a malformed header
        return
    for source, target in catalogue.items():
        if not isinstance(source, str) or "\x04" in source:
            continue
        source, target = source.strip(), target.strip()
        if len(source.split()) < 3 or not target or {"\n", "\t"} & set(source + target):
            continue
        if len(source) <= LONGEST_SOURCE and len(target) <= LONGEST_TARGET:
            yield source, target


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--language", default="de")
    a = parser.parse_args()
    pairs = {}
    for path in sorted(glob.glob(f"/usr/share/locale/{a.language}/LC_MESSAGES/*.mo")):
        if not any(word in path for word in NOT):
            for source, target in pairs_of(path):
                pairs.setdefault(source, target)
    sources = sorted(pairs)
    random.Random(1).shuffle(sources)
    parts = {"valid": sources[:HELD], "test": sources[HELD:2 * HELD], "train": sources[2 * HELD:]}
    for name, some in parts.items():
        with open(os.path.join(a.folder, name + ".tsv"), "w", encoding="utf-8") as file:
            file.writelines(f"{source}\t{pairs[source]}\n" for source in some)
        print(f"{name}.tsv: {len(some):,} pairs")


if __name__ == "__main__":
    main()
