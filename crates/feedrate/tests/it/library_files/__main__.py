"""Writes a folder of each kind of files with the formats' libraries: python library_files FOLDER [WORD]...

Writes FOLDER/expected.json: what the libraries read in one epoch, by folder. With words, only kinds whose name or its first
word is among them. The environment variables LIBRARY_FILES and LIBRARY_SAMPLES set the number of files of a kind, and of
samples in a file.
"""
import json
import os
import sys

import hdf5_kinds
import numpy_kinds
import arrow_kinds
import archive_kinds
import image_kinds
import text_kinds
import mixed_kinds
from kinds import kinds

root, words = sys.argv[1], sys.argv[2:]
expected = {}
for name, kind in kinds.items():
    if words and not {name, name.split()[0]} & set(words):
        continue
    folder = os.path.join(root, name)
    os.makedirs(folder)
    kind.write(folder)
    expected[name] = kind.expect(folder)
with open(os.path.join(root, "expected.json"), "w") as file:
    json.dump(expected, file, indent=1)
