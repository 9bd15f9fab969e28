package ui

import (
	"strings"
)

// styleOf returns the style of a cell in a column: names, states and errors are
// highlighted.
func styleOf(title, cell string, name bool) Style {
	switch title {
	case "ERROR":
		return Red
	case "STATE", "DECISION", "OUTCOME", "RESULT":
		return StateStyle(cell)
	}
	if name {
		return Bold
	}
	return 0
}

// StateStyle returns the style of a state or a decision: green for success, red
// for failures and refusals, yellow for what needs attention.
func StateStyle(word string) Style {
	switch strings.ToLower(word) {
	case "ok", "connected", "loaded", "allow", "allowed", "granted", "trusted", "read", "yes":
		return Green
	case "failed", "error", "deny", "denied", "refused", "invalid", "limited", "timeout", "cancelled":
		return Red
	case "ask", "asked", "warning", "changed", "cached", "not trusted", "needs login", "untrusted", "ignored":
		return Yellow
	case "skipped", "disabled", "absent", "off", "info":
		return Dim
	}
	return 0
}
