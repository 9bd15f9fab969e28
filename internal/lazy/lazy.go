// Package lazy makes the values of package variables when they are first needed. The
// compiler initializes the variables themselves, which it cannot do for results of
// [sync.OnceValue], so that they cost nothing in runs that do not need them.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled when it is first needed.
type Regexp struct {
	expr     string
	once     sync.Once
	compiled *regexp.Regexp
}

// NewRegexp returns the regular expression expr, which must be valid.
func NewRegexp(expr string) *Regexp { return &Regexp{expr: expr} }

// Get returns the compiled expression. It panics if the expression is invalid.
func (r *Regexp) Get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.expr) })
	return r.compiled
}

// Value is the result of a function that is called when it is first needed.
type Value[T any] struct {
	make   func() T
	once   sync.Once
	result T
}

// New returns the result of make, which should be a declared function: for a function
// literal, the compiler cannot initialize the variable.
func New[T any](make func() T) *Value[T] { return &Value[T]{make: make} }

// Get returns the value.
func (v *Value[T]) Get() T {
	v.once.Do(func() { v.result = v.make() })
	return v.result
}
