"""Validates objects against their JSON Schemas: python schema.py FILE of [{"schema": …, "object": …}, …]. A key that is not in its schema is an error."""
import json
import sys

from jsonschema import Draft202012Validator

with open(sys.argv[1]) as file:
    pairs = json.load(file)
for pair in pairs:
    schema, instance = pair["schema"], pair["object"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(instance)
    unknown = instance.keys() - schema["properties"].keys()
    assert not unknown, f"{schema['title']}: not in its schema: {unknown}"
print(len(pairs))
