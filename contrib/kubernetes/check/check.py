#!/usr/bin/env python3
"""Checks of the manifests, without a cluster and without Helm:
  check.py validate FILE..         holds each document of YAML to schema.json (Kubernetes 1.30, the operator's PodMonitor),
                                   and prints them as one list of JSON; exit code 1 and where it fails, if one does
  check.py render [NAME=VALUE ..]  prints what `helm template fullpipe chart --namespace fullpipe` prints, with these
                                   values set; of Go's templates it knows what the chart uses, and refuses the rest
Needs PyYAML. `validate` knows the words of JSON Schema that schema.json has, and refuses others.
"""
import json
import pathlib
import re
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent / "chart"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


class Wrong(Exception):
    """What is wrong, and where."""


def is_type(value, name: str) -> bool:
    if name in ("integer", "number"):
        kinds = int if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def validate(value, schema: dict, at: str, definitions: dict) -> None:
    """Raises Wrong where `value` is not as `schema` has it."""
    for word, rule in schema.items():
        if word == "$ref":
            validate(value, definitions[rule.removeprefix("#/$defs/")], at, definitions)
        elif word == "type":
            names = rule if isinstance(rule, list) else [rule]
            if not any(is_type(value, name) for name in names):
                raise Wrong(f"{at}: {json.dumps(value)} is no {' or '.join(names)}")
        elif word in ("oneOf", "anyOf"):
            fitting = 0
            for branch in rule:
                try:
                    validate(value, branch, at, definitions)
                    fitting += 1
                except Wrong:
                    pass
            # A null is of both kinds of a number or text; as Kubernetes, take the first.
            if fitting == 0:
                raise Wrong(f"{at}: {json.dumps(value)} fits nothing of what may stand here")
        elif word == "enum":
            if value not in rule:
                raise Wrong(f"{at}: {json.dumps(value)} is none of {', '.join(map(str, rule))}")
        elif word == "properties" and isinstance(value, dict):
            for name in value.keys() & rule.keys():
                validate(value[name], rule[name], f"{at}.{name}", definitions)
        elif word == "required" and isinstance(value, dict):
            for name in rule:
                if value.get(name) is None:
                    raise Wrong(f"{at}: `{name}` is missing")
        elif word == "additionalProperties" and isinstance(value, dict):
            for name in value.keys() - schema.get("properties", {}).keys():
                if rule is False:
                    raise Wrong(f"{at}: there is no field `{name}`")
                if rule is not True:
                    validate(value[name], rule, f"{at}.{name}", definitions)
        elif word == "items" and isinstance(value, list):
            for index, item in enumerate(value):
                validate(item, rule, f"{at}[{index}]", definitions)
        elif word == "pattern" and isinstance(value, str):
            if not re.search(rule, value):
                raise Wrong(f"{at}: {json.dumps(value)} does not match {rule}")
        elif word in ("minimum", "maximum") and is_type(value, "number"):
            if (value < rule) if word == "minimum" else (value > rule):
                raise Wrong(f"{at}: {value} is beyond the {word} {rule}")
        elif word == "minLength" and isinstance(value, str):
            if len(value) < rule:
                raise Wrong(f"{at}: the text is too short")
        elif word not in ("properties", "required", "additionalProperties", "items", "pattern", "minimum", "maximum",
                          "minLength", "format", "default"):
            raise Wrong(f"{at}: the schema has the word `{word}`, which this check does not know")


def documents(files: list[str]) -> list[dict]:
    """The documents of the files, each as its kind has to be."""
    schema = json.loads((HERE / "schema.json").read_text())
    found = []
    for file in files:
        for index, document in enumerate(yaml.safe_load_all(pathlib.Path(file).read_text())):
            at = f"{file}, document {index + 1}"
            if not isinstance(document, dict):
                raise Wrong(f"{at}: it is empty")
            kind = f"{document.get('apiVersion')}/{document.get('kind')}"
            if kind not in schema["kinds"]:
                raise Wrong(f"{at}: the kind {kind} is not in schema.json")
            name = schema["kinds"][kind]
            validate(document, schema["$defs"][name], f"{at}, {document['kind']}", schema["$defs"])
            found.append(document)
    return found


def value_of(expression: str, scope: dict):
    """What a pipeline of the chart's templates gives."""
    first, *pipes = [part.strip() for part in expression.split("|")]
    function, _, path = first.rpartition(" ")
    value = scope
    for name in path.removeprefix(".").split("."):
        value = value[name]
    if function == "toYaml":
        # As Helm prints it: keys in order, lists not indented below their key.
        value = yaml.safe_dump(value, default_flow_style=False, width=10_000).rstrip("\n")
    elif function:
        raise Wrong(f"a template uses `{function}`, which this check does not know")
    for pipe in pipes:
        word, argument = pipe.split()
        if word == "nindent":
            value = "\n" + "\n".join(" " * int(argument) + line for line in value.split("\n"))
        elif word == "default":
            value = value or value_of(argument, scope)
        else:
            raise Wrong(f"a template uses `{word}`, which this check does not know")
    return value


def render_template(text: str, scope: dict) -> str:
    out, shown = [], [True]
    for part in re.split(r"(\s*\{\{-.*?\}\}|\{\{.*?\}\})", text, flags=re.DOTALL):
        trimmed = part.lstrip()
        if not trimmed.startswith("{{"):
            out.append(part if all(shown) else "")
            continue
        expression = trimmed.removeprefix("{{").removeprefix("-").removesuffix("}}").strip()
        if expression.startswith("if "):
            shown.append(bool(value_of(expression.removeprefix("if "), scope)))
        elif expression == "end":
            shown.pop()
        elif all(shown):
            value = value_of(expression, scope)
            out.append(str(value).lower() if isinstance(value, bool) else str(value))
    return "".join(out)


def render(settings: list[str]) -> str:
    """The chart with its default values and `settings`, as Helm prints it, in the order in which it installs."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    for setting in settings:
        path, _, value = setting.partition("=")
        *parents, last = path.split(".")
        inner = values
        for name in parents:
            inner = inner[name]
        if last not in inner:
            raise Wrong(f"the chart has no value {path}")
        inner[last] = yaml.safe_load(value)
    schema = json.loads((CHART / "values.schema.json").read_text())
    schema.pop("$schema")
    validate(values, schema, "values", {})
    scope = {"Values": values, "Release": {"Name": "fullpipe", "Namespace": "fullpipe"},
             "Chart": {"AppVersion": chart["appVersion"]}}
    parts = []
    for name in ("serviceaccount", "daemonset", "podmonitor"):
        text = render_template((CHART / f"templates/{name}.yaml").read_text(), scope).strip("\n")
        if text:
            parts.append(f"---\n{text}\n")
    return "".join(parts)


def main() -> None:
    command, *rest = sys.argv[1:] or [""]
    try:
        if command == "validate" and rest:
            json.dump(documents(rest), sys.stdout)
        elif command == "render":
            sys.stdout.write(render(rest))
        else:
            sys.exit(__doc__)
    except Wrong as wrong:
        sys.exit(f"check.py: {wrong}")


main()
