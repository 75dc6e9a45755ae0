"""Reads the CSV of a study by pandas, with the arguments of the perf_2025 notebook."""

import sys

import pandas

design = pandas.read_csv(sys.argv[1], comment="#", skip_blank_lines=True)
design["run"] = design["run"].str.strip().str.upper()
assert list(design.columns) == ["model", "epochs", "processes", "overrides", "run"], design.columns
assert design["processes"].dtype == "int64" and design["epochs"].dtype == "int64"
done, pending = (design["run"] == "Y").sum(), (design["run"] == "N").sum()
print(f"{len(design)} rows, {done} done, {pending} pending")
