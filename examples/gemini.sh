#!/usr/bin/env bash
# An agent in bash with curl, jq and toolreg: the Gemini API.
#
#   GEMINI_API_KEY=… examples/gemini.sh 'What does go.mod say?'
set -euo pipefail
: "${GEMINI_API_KEY:?}" "${1:?usage: gemini.sh PROMPT}"
model=${GEMINI_MODEL:-gemini-2.5-flash}
url=${GEMINI_BASE_URL:-https://generativelanguage.googleapis.com}/v1beta/models/$model:generateContent

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'x-goog-api-key: %s\nContent-Type: application/json\n' "$GEMINI_API_KEY" > "$dir/headers"

toolreg schema --format gemini --request --defer auto > "$dir/tools.json"
jq -n --arg text "$1" '[{role: "user", parts: [{text: $text}]}]' > "$dir/contents.json"
while :; do
	jq -n --slurpfile tools "$dir/tools.json" --slurpfile contents "$dir/contents.json" \
		'{tools: $tools[0], contents: $contents[0]}' |
		curl -sS --fail-with-body -H @"$dir/headers" --data-binary @- -o "$dir/response.json" "$url" ||
		{ cat "$dir/response.json" >&2 2>/dev/null; exit 1; }
	toolreg call --format gemini < "$dir/response.json" > "$dir/reply.jsonl"
	[ -s "$dir/reply.jsonl" ] || break # no function was called: the model is done
	# The model's content goes back as it came, thought signatures included.
	jq -s '.[0] + [.[1].candidates[0].content] + .[2:]' \
		"$dir/contents.json" "$dir/response.json" "$dir/reply.jsonl" > "$dir/next.json"
	mv "$dir/next.json" "$dir/contents.json"
done
jq -r '[.candidates[0].content.parts[] | select(.thought | not) | .text // empty] | join("")' "$dir/response.json"
