// Package exec runs one call: validate, decide, confirm, run (spec section 8).
//
// [Executor.Execute] is the only way to run a tool, whether in a single call, a
// batch or a server. It is the only place that asks a person for confirmation,
// and does so through [Confirmer], so that this package does not depend on a
// terminal.
package exec
