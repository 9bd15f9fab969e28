// Package lint reports what a provider would refuse or ignore in declarations,
// and what costs more than necessary. It declares with package provider and
// checks the result.
package lint
