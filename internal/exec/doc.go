// Package exec runs one call: validate, decide, confirm, run (spec section 8).
//
// [Executor.Execute] is the only way from a request to a running tool, for one
// call, a batch and a server alike. It is the only place that asks a person,
// and it asks through [Confirmer], so that nothing here knows a terminal.
package exec
