"""The JSON Schema of pipeline files, made by pydantic from the dataclasses of `schema.py`."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tile_core.pipeline.schema import PipelineFile


def pipeline_schema() -> dict[str, Any]:
    """The schema as JSON data."""
    found = TypeAdapter(PipelineFile).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def rejected_by_schema(data: dict[str, Any]) -> str | None:
    """Why pydantic does not accept parsed TOML, or None; agrees with `tables.read_file`."""
    # Dates, the only TOML values that JSON lacks, become null, which no key takes.
    text = json.dumps(data, default=lambda _: None)
    try:
        TypeAdapter(PipelineFile).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
