// Package lint says of declarations what a provider would refuse, what it would
// ignore, and what costs more than it need. It declares with package declare
// and looks at what came of it.
package lint
