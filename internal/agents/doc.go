// Package agents reads and writes the files of other agents: the MCP servers that
// they have configured, for the setting imports, --import and `toolreg servers import`
// (servers*.go), and their permissions as policy rules and back (rules*.go).
//
// It knows where each program keeps its files and what they mean, and opens none:
// package settings and the commands read the bytes and check whether they may be used.
//
// ImportRules never allows more than the other program does. What cannot be said exactly
// becomes narrower if it allows and wider if it asks or denies; a permission that has no
// narrower form is left out. Both are reported.
package agents
