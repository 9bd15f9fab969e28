// Package exec runs calls: it validates the params, decides, asks for confirmation
// and runs the tool.
//
// [Executor.Execute] is the only way to run a tool, whether in a single call, a
// batch or a server, and the only place that asks a person for confirmation. It
// asks through [Confirmer], so that this package does not depend on a terminal.
package exec
