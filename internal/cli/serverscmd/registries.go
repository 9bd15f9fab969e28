package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// registriesOf returns the registries of the settings.
func registriesOf(ctx context.Context, e *cli.Env, s *settings.Settings) ([]*mcpregistry.Registry, error) {
	x := values.NewExpander(s.ProjectRoot, e.Config.Environ)
	var out []*mcpregistry.Registry
	for _, r := range s.Registries {
		address, err := x.Expand(r.URL)
		if err == nil {
			err = settings.CheckRegistry(address)
		}
		if err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("%s: registries: %w", r.Origin, err)}
		}
		pairs, err := x.Headers(ctx, r.Headers)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		one := &mcpregistry.Registry{URL: strings.TrimSuffix(address, "/"), Headers: http.Header{}, Agent: "toolreg/" + e.Version}
		for _, p := range pairs {
			one.Headers.Set(p.Name, p.Value)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, &cli.UsageError{Err: errors.New("the setting registries is empty"), Hint: "remove it to use the official registry"}
	}
	return out, nil
}

// warnFailed warns that a registry could not answer while others did.
func warnFailed(ios *cli.IO, err error) {
	ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "registry_failed", Message: err.Error()})
}
