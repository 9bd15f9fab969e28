#!/bin/sh
# Prints the declarations of the project's own tools.
cat <<'JSON'
[
  {
    "function_declarations": [
      {
        "name": "word_count",
        "description": "Counts the words of a file of the project.",
        "parameters": {
          "type": "object",
          "properties": {
            "file": {"type": "string", "description": "Path of the file, relative to the project root."}
          },
          "required": ["file"]
        }
      }
    ]
  },
  {
    "name": "today",
    "description": "Tells the date.",
    "parametersJsonSchema": {"type": "object", "properties": {}}
  }
]
JSON
