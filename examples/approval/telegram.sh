#!/bin/sh
# Asks on your phone, through a Telegram bot, whether a call may run (setting approval.command).
# ~/.config/toolreg/telegram sets TOKEN, of the bot, and CHAT, your own numeric id.
set -eu
. "${XDG_CONFIG_HOME:-$HOME/.config}/toolreg/telegram"
call() { # METHOD JSON; other programs could see the token among the arguments
	printf 'url = "https://api.telegram.org/bot%s/%s"\n' "$TOKEN" "$1" |
		curl -sSf -m 30 -K - -H 'Content-Type: application/json' -d "$2"
}
id=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
call sendMessage "$(jq --arg chat "$CHAT" --arg id "$id" '(.text | length > 4000) as $long |
	{chat_id: $chat, text: (if $long then .text[:4000] + "\n(cut: too long to approve here)" else .text end),
	reply_markup: {inline_keyboard: [[.choices[] | select($long | not), select(. == "no" and $long) |
		{text: ., callback_data: ($id + " " + .)}]]}}')" >/dev/null
until call getUpdates '{"offset": -50}' | jq -e --arg chat "$CHAT" --arg id "$id " 'first(.result[].callback_query |
	select(.from.id == ($chat | tonumber)) | .data | select(startswith($id)) | {choice: ltrimstr($id)})'; do
	sleep 2
done
