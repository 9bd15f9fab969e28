#!/usr/bin/env bash
# An agent in bash with curl, jq and toolreg: Anthropic's Messages API.
#
#   ANTHROPIC_API_KEY=… examples/anthropic.sh 'What does go.mod say?'
set -euo pipefail
: "${ANTHROPIC_API_KEY:?}" "${1:?usage: anthropic.sh PROMPT}"
url=${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages
model=${ANTHROPIC_MODEL:-claude-sonnet-4-5}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'x-api-key: %s\nanthropic-version: 2023-06-01\nContent-Type: application/json\n' "$ANTHROPIC_API_KEY" > "$dir/headers"

toolreg schema --format anthropic --request --defer auto > "$dir/tools.json"
jq -n --arg text "$1" '[{role: "user", content: $text}]' > "$dir/messages.json"
while :; do
	jq -n --arg model "$model" --slurpfile tools "$dir/tools.json" --slurpfile messages "$dir/messages.json" \
		'{model: $model, max_tokens: 8192, tools: $tools[0], messages: $messages[0]}' |
		curl -sS --fail-with-body -H @"$dir/headers" --data-binary @- -o "$dir/response.json" "$url" ||
		{ cat "$dir/response.json" >&2 2>/dev/null; exit 1; }
	toolreg call --format anthropic < "$dir/response.json" > "$dir/reply.jsonl"
	[ -s "$dir/reply.jsonl" ] || break # no tool was called: the model is done
	jq -s '.[0] + [.[1] | {role, content}] + .[2:]' \
		"$dir/messages.json" "$dir/response.json" "$dir/reply.jsonl" > "$dir/next.json"
	mv "$dir/next.json" "$dir/messages.json"
done
jq -r '[.content[] | select(.type == "text").text] | join("\n")' "$dir/response.json"
