"""The service's interface as an OpenAPI document."""

from typing import Any

from sfumato.version import __version__


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    place = {"$ref": "#/components/schemas/Place"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sfumato",
            "version": __version__,
            "description": "Reports in place of true locations, on this machine.",
        },
        "paths": {
            "/v1/geolocate": {
                "post": {
                    "summary": "A report for one place",
                    "description": (
                        "Other fields of the usual request (Wi-Fi, cell towers) are allowed and not"
                        " read."
                    ),
                    "requestBody": _json({"type": "object", "properties": {"location": place}}),
                    "responses": _responses({"$ref": "#/components/schemas/Report"}),
                }
            },
            "/v1/batch": {
                "post": {
                    "summary": (
                        "A report for each of several places; null for one outside the region"
                    ),
                    "requestBody": _json(
                        {
                            "type": "object",
                            "required": ["locations"],
                            "properties": {
                                "locations": {
                                    "type": "array",
                                    "items": place,
                                    "minItems": 1,
                                    "maxItems": 10_000,
                                }
                            },
                        }
                    ),
                    "responses": _responses(
                        {
                            "type": "object",
                            "required": ["reports"],
                            "properties": {
                                "reports": {
                                    "type": "array",
                                    "items": {
                                        "anyOf": [
                                            {"$ref": "#/components/schemas/Report"},
                                            {"type": "null"},
                                        ]
                                    },
                                }
                            },
                        }
                    ),
                }
            },
            "/openapi.json": {
                "get": {
                    "summary": "This document",
                    "responses": {"200": {"description": "OpenAPI"}},
                }
            },
            "/health": {
                "get": {
                    "summary": "Whether the service is up",
                    "responses": {"200": {"description": "It is"}},
                }
            },
        },
        "components": {
            "schemas": {
                "Place": {
                    "type": "object",
                    "required": ["lat", "lng"],
                    "properties": {
                        "lat": {"type": "number", "minimum": -90, "maximum": 90},
                        "lng": {"type": "number", "minimum": -180, "maximum": 180},
                    },
                },
                "Report": {
                    "type": "object",
                    "required": ["location", "accuracy"],
                    "properties": {
                        "location": place,
                        "accuracy": {
                            "type": "number",
                            "description": (
                                "Metres; 95 % of reports lie within this distance of the truth."
                            ),
                        },
                    },
                },
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": {
                            "type": "object",
                            "required": ["code", "message", "errors"],
                            "properties": {
                                "code": {"type": "integer"},
                                "message": {"type": "string"},
                                "errors": {"type": "array"},
                            },
                        }
                    },
                },
            }
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _responses(schema: dict[str, Any]) -> dict[str, Any]:
    refusals = {
        "400": "Not understood",
        "403": "Not from here",
        "404": "No report",
        "413": "Too large",
        "415": "Not JSON",
        "429": "Too often",
    }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: dict[str, Any] = {
        "200": {"description": "Reported", "content": {"application/json": {"schema": schema}}}
    }
    return found | {
        code: {"description": text, "content": error} for code, text in refusals.items()
    }
