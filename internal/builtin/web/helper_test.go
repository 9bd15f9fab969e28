package web

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run makes a call that must succeed.
func run(t testing.TB, opts Options, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, NewFetch(opts), params)
}

func TestParamsMatchSchema(t *testing.T) {
	tooltest.SameParams[fetchParams](t, NewFetch(Options{}))
}
