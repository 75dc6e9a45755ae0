"""Holds objects to their JSON Schemas: python schema.py FILE of [{"schema": …, "object": …}, …]. Keys that a schema does not name are errors too."""
import json
import sys

from jsonschema import Draft202012Validator

with open(sys.argv[1]) as file:
    pairs = json.load(file)
for pair in pairs:
    schema, told = pair["schema"], pair["object"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(told)
    unknown = told.keys() - schema["properties"].keys()
    assert not unknown, f"{schema['title']}: not in its schema: {unknown}"
print(len(pairs))
