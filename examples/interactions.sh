#!/usr/bin/env bash
# An agent in bash with curl, jq and toolreg: Gemini's Interactions API, which keeps the conversation.
#
#   GEMINI_API_KEY=… examples/interactions.sh 'What does go.mod say?'
set -euo pipefail
: "${GEMINI_API_KEY:?}" "${1:?usage: interactions.sh PROMPT}"
model=${GEMINI_MODEL:-gemini-2.5-flash}
url=${GEMINI_BASE_URL:-https://generativelanguage.googleapis.com}/v1beta/interactions

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'x-goog-api-key: %s\nContent-Type: application/json\n' "$GEMINI_API_KEY" > "$dir/headers"

toolreg schema --format gemini-interactions --request --defer auto > "$dir/tools.json"
jq -n --arg text "$1" '{type: "user_input", content: [{type: "text", text: $text}]}' > "$dir/input.jsonl"
echo '{}' > "$dir/response.json"
while :; do
	# Only what is new is sent. Tools belong to one interaction and are declared each time.
	jq -n --arg model "$model" --slurpfile tools "$dir/tools.json" --slurpfile input "$dir/input.jsonl" --slurpfile last "$dir/response.json" \
		'{model: $model, tools: $tools[0], input: $input} + ($last[0] | if .id then {previous_interaction_id: .id} else {} end)' |
		curl -sS --fail-with-body -H @"$dir/headers" --data-binary @- -o "$dir/response.json" "$url" ||
		{ cat "$dir/response.json" >&2 2>/dev/null; exit 1; }
	toolreg call --format gemini-interactions < "$dir/response.json" > "$dir/input.jsonl"
	[ -s "$dir/input.jsonl" ] || break # no function was called: the model is done
done
jq -r '[.steps[] | select(.type == "model_output") | .content[] | .text // empty] | join("")' "$dir/response.json"
