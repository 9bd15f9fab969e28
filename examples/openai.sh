#!/usr/bin/env bash
# An agent in bash with curl, jq and toolreg: OpenAI chat completions and compatible
# APIs (set OPENAI_BASE_URL).
#
#   OPENAI_API_KEY=… examples/openai.sh 'What does go.mod say?'
set -euo pipefail
: "${OPENAI_API_KEY:?}" "${1:?usage: openai.sh PROMPT}"
url=${OPENAI_BASE_URL:-https://api.openai.com/v1}/chat/completions
model=${OPENAI_MODEL:-gpt-5-mini}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'Authorization: Bearer %s\nContent-Type: application/json\n' "$OPENAI_API_KEY" > "$dir/headers"

toolreg schema --format openai --request --defer auto > "$dir/tools.json"
jq -n --arg text "$1" '[{role: "user", content: $text}]' > "$dir/messages.json"
while :; do
	jq -n --arg model "$model" --slurpfile tools "$dir/tools.json" --slurpfile messages "$dir/messages.json" \
		'{model: $model, tools: $tools[0], messages: $messages[0]}' |
		curl -sS --fail-with-body -H @"$dir/headers" --data-binary @- -o "$dir/response.json" "$url" ||
		{ cat "$dir/response.json" >&2 2>/dev/null; exit 1; }
	toolreg call --format openai < "$dir/response.json" > "$dir/reply.jsonl"
	[ -s "$dir/reply.jsonl" ] || break # no tool was called: the model is done
	jq -s '.[0] + [.[1].choices[0].message] + .[2:]' \
		"$dir/messages.json" "$dir/response.json" "$dir/reply.jsonl" > "$dir/next.json"
	mv "$dir/next.json" "$dir/messages.json"
done
jq -r '.choices[0].message.content' "$dir/response.json"
