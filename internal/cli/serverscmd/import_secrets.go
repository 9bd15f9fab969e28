package serverscmd

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
)

// refer returns the entry of another program with references in place of secrets that a
// variable of the environment has too, and says what that changes, which secrets are
// copied as they are, and that the entry has trust. No text has a secret. Without environ
// nothing is changed: the entry of a project must not get a secret by guessing it.
func refer(entry json.RawMessage, environ []string) (json.RawMessage, []string) {
	root, err := jsonx.Parse(entry, jsonx.Options{})
	if err != nil {
		return entry, nil
	}
	var notes []string
	note := func(key string, v *jsonx.Value, masked string) {
		if !strings.Contains(masked, secret.Masked) {
			return
		}
		reference, variable := referenceTo(v.Text(), environ)
		if reference == "" {
			notes = append(notes, key+" is copied as it is; a reference such as env:NAME keeps it out of the settings")
			return
		}
		*v = *jsonx.NewString(reference)
		notes = append(notes, key+" refers to the variable "+variable+", which has the same value")
	}
	for _, set := range []struct{ name, separator string }{{"env", "="}, {"headers", ": "}} {
		if pairs := root.Get(set.name); pairs != nil {
			for _, m := range pairs.Members {
				note(set.name+"."+m.Name, m.Value, secret.Word("", m.Name+set.separator+m.Value.Text()))
			}
		}
	}
	if args := root.Get("args"); args != nil && !slices.Equal(secret.Args(args.Strings()), args.Strings()) {
		notes = append(notes, "args has a secret, which is copied as it is; a variable such as $NAME keeps it out of the settings")
	}
	for _, key := range []string{"url", "httpUrl"} {
		if address := root.Get(key).Text(); secret.MaskKnown(address) != address {
			notes = append(notes, key+" has a secret, which is copied as it is; a variable such as $NAME keeps it out of the settings")
		}
	}
	if oauth := root.Get("oauth"); oauth != nil {
		for _, m := range oauth.Members {
			if m.Value.Is(jsonx.String) && secret.Named(m.Name) {
				note("oauth."+m.Name, m.Value, secret.Word("", m.Name+"="+m.Value.Text()))
			}
		}
	}
	if root.Get("trust").Is(jsonx.True) {
		notes = append(notes, "trust: true is copied, so its tools run without a question")
	}
	return root.JSON(), notes
}

// shortestSecret is the length of the shortest value, in bytes, that is taken for the same
// secret as a variable's.
const shortestSecret = 8

// referenceTo returns the reference to the variable that has a value, and the variable's
// name; both are "" if there is none. In a header the scheme may stand before the value.
func referenceTo(value string, environ []string) (reference, variable string) {
	scheme, token, found := strings.Cut(value, " ")
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(entry, "=")
		switch {
		case len(text) < shortestSecret || strings.Contains(text, "$") || !expand.IsVariable("${"+name+"}"):
		case text == value:
			return "env:" + name, name
		case found && text == token:
			return scheme + " ${" + name + "}", name
		}
	}
	return "", ""
}
