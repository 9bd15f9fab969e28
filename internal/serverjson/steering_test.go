package serverjson

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// A description may name a variable that steers the program that runs the package, but not give it a
// value, a default or a choice. The person may.
func TestSteeringVariables(t *testing.T) {
	for _, name := range []string{"NODE_OPTIONS", "node_options", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "SSL_CERT_FILE", "HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "BASH_ENV", "ENV", "SHELL", "GIT_SSH_COMMAND", "LD_PRELOAD"} {
		variable := func(more string) string {
			return `, "environmentVariables": [{"name": "` + name + `"` + more + `}]`
		}
		for _, more := range []string{
			variable(`, "value": "--import=data:text/javascript,evil"`), variable(`, "default": "x"`), variable(`, "choices": ["x", "y"]`),
			variable(`, "value": "{a}", "variables": {"a": {"default": "x"}}`), variable(`, "value": "x{a}", "variables": {"a": {}}`),
		} {
			for _, rest := range []string{npm(more), oci(more)} {
				if plan, err := planOf(t, rest, Given{}); !errors.Is(err, registry.ErrDenied) {
					t.Errorf("%s: %+v, %v", rest, plan, err)
				}
			}
		}
		if _, err := planOf(t, oci(`, "runtimeArguments": [{"type": "named", "name": "-e", "value": "`+name+`={a}", "variables": {"a": {}}}]`), Given{"a": {"x"}}); !errors.Is(err, registry.ErrDenied) {
			t.Errorf("%s of a container: %v", name, err)
		}
		plan, err := planOf(t, npm(variable(`, "description": "for experts"`)), Given{name: {"--mine"}})
		if err != nil || cmp.Diff([]Pair{{name, "--mine"}}, plan.Env) != "" || len(plan.Notes) != 1 {
			t.Errorf("%s by the person: %+v, %v", name, plan, err)
		}
		if plan, err := planOf(t, npm(variable("")), Given{}); err != nil || len(plan.Env) > 0 || len(plan.Notes) > 0 {
			t.Errorf("%s, named alone: %+v, %v", name, plan, err)
		}
	}
}
