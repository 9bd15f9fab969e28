package servecmd

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/settings"
)

// usesOAuth reports whether settings make the server a resource server.
func usesOAuth(set settings.ServeOAuth) bool {
	return set.Issuer.Value+set.Audience.Value+set.KeysURL.Value != "" || len(set.Scopes) > 0
}

// useOAuth makes the server a resource server if the settings say so. On stdin there are no tokens.
func (o *options) useOAuth(e *cli.Env, set settings.ServeOAuth) error {
	if !o.overHTTP() || !usesOAuth(set) {
		return nil
	}
	at := cmp.Or(set.Issuer, set.Audience, set.KeysURL).Origin
	if len(set.Scopes) > 0 {
		at = cmp.Or(at, set.Scopes[0].Origin)
	}
	if o.tokenFile != "" || o.noAuth {
		return &cli.UsageError{Err: fmt.Errorf("%s: serve.oauth cannot be used together with --token-file or --no-auth", at), Hint: "leave out the flag, or remove serve.oauth"}
	}
	oauth, err := auth.NewOAuth(set, func(err error) {
		e.IO.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "issuer_keys_unread", Message: err.Error(), Hint: "toolreg tries again; until then, requests whose tokens are signed with keys that it does not know get 503"})
	})
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("%s: %w", at, err)}
	}
	o.oauth = oauth
	return nil
}

// changeOAuth applies changed settings.
func (o *options) changeOAuth(set settings.ServeOAuth) error {
	switch {
	case !o.overHTTP():
		return nil
	case usesOAuth(set) != (o.oauth != nil):
		return errors.New("serve.oauth was added or removed, which needs a restart of serve")
	case o.oauth != nil:
		return o.oauth.Change(set)
	}
	return nil
}
