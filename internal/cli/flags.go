package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/engine"
)

// context reads --context k=v and TOOLREG_CONTEXT, a JSON object. Numbers, true
// and false are converted; the value of k:=JSON is JSON.
func (c *Config) context() ([]engine.Fact, error) {
	var out []engine.Fact
	if text := c.Getenv("TOOLREG_CONTEXT"); text != "" {
		var facts map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &facts) != nil {
			return nil, &UsageError{Err: fmt.Errorf("TOOLREG_CONTEXT is not a JSON object"), Hint: `for example {"agentId":"a1"}`}
		}
		for k, v := range facts {
			out = append(out, engine.Fact{Name: k, Value: v})
		}
	}
	flags, err := c.globalFlags().GetStringArray("context")
	if err != nil {
		return nil, err
	}
	for _, f := range flags {
		name, text, ok := strings.Cut(f, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !ok || name == "" {
			return nil, &UsageError{Err: fmt.Errorf("--context %q: expected k=v", f), Hint: "for example --context sandboxed=true"}
		}
		value := json.RawMessage(text)
		literal := text == "true" || text == "false" || text != "" && strings.Trim(text, "0123456789.eE+-") == ""
		switch {
		case raw && !json.Valid(value):
			return nil, &UsageError{Err: fmt.Errorf("--context %s:= needs JSON", name)}
		case !raw && !(literal && json.Valid(value)):
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			value = quoted
		}
		out = append(out, engine.Fact{Name: name, Value: value})
	}
	return out, nil
}

// cacheMode returns how cached listings are used.
func (c *Config) cacheMode(ask bool) cache.Mode {
	switch {
	case c.Globals.Refresh:
		return cache.Renew
	case c.Globals.Cached:
		return cache.Offline
	case ask:
		return cache.Live
	}
	return cache.Fresh
}

// locked reads --locked and its variable.
func (c *Config) locked() (bool, error) {
	locked, err := c.globalFlags().GetBool("locked")
	if err != nil || c.globalFlags().Changed("locked") {
		return locked, err
	}
	v := cmp.Or(c.Getenv("TOOLREG_LOCKED"), "false")
	if locked, err = strconv.ParseBool(v); err != nil {
		return false, &UsageError{Err: fmt.Errorf("TOOLREG_LOCKED: %q is neither true nor false", v)}
	}
	return locked, nil
}

// wantsJSON reports whether the command line or the environment requests JSON. It does
// not use the flag parser, which stops at the first mistake: that mistake must be
// reported in JSON too. The last flag wins.
func wantsJSON(argv []string, variable string) bool {
	wanted, _ := strconv.ParseBool(cmp.Or(variable, "false")) // invalid values are reported elsewhere
	for _, word := range argv {
		name, value, given := strings.Cut(word, "=")
		switch {
		case word == "--":
			return wanted
		case name == "--jq":
			wanted = true
		case name == "--json":
			on, err := strconv.ParseBool(value)
			wanted = !given || on || err != nil
		}
	}
	return wanted
}

// check returns an error for mistakes in the global flags that would otherwise be found
// only after a command has started to work, or not at all.
func (c *Config) check() error {
	if c.Globals.Refresh && c.Globals.Cached {
		return &UsageError{Err: errors.New("--refresh and --cached cannot be used together"), Hint: "TOOLREG_REFRESH and TOOLREG_CACHED act like the flags"}
	}
	if c.Globals.Record != "" && c.Globals.Replay != "" {
		return &UsageError{Err: errors.New("--record and --replay cannot be used together"), Hint: "TOOLREG_RECORD and TOOLREG_REPLAY act like the flags"}
	}
	_, err := c.context()
	return err
}
