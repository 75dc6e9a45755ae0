"""Prints a JUnit file and an OpenMetrics file as their own parsers read them, as one JSON object."""

import json
import sys

from junitparser import JUnitXml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

junit, openmetrics = sys.argv[1:]
cases = []
for suite in JUnitXml.fromfile(junit):
    for case in suite:
        results = [(type(result).__name__, result.message) for result in case.result]
        cases.append({"subject": case.classname, "name": case.name, "results": results})
with open(openmetrics, encoding="utf-8") as file:
    families = list(text_string_to_metric_families(file.read()))
samples = [
    {"name": sample.name, "labels": sample.labels, "value": sample.value}
    for family in families
    for sample in family.samples
]
families = {
    family.name: {"type": family.type, "unit": family.unit, "help": family.documentation}
    for family in families
}
print(json.dumps({"cases": cases, "families": families, "samples": samples}))
