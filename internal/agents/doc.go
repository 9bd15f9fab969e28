// Package agents reads and writes the files of other agents: the MCP servers that
// they have configured, for the setting imports, --import and `toolreg servers import`
// (servers*.go), and their permissions as policy rules and back (rules*.go).
//
// It knows the location and the format of each program's files, but opens none:
// package settings and the commands read them and check whether they may be used.
//
// Imported rules never allow more than the other program does. If a permission has
// no exact counterpart, it becomes narrower if it allows and broader if it asks or
// denies, or is omitted. Each such case is reported.
package agents
