package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
)

// Finding is a mistake in a script.
type Finding struct {
	At      string `json:"at"` // FILE:LINE:COL
	Tool    string `json:"tool,omitempty"`
	Message string `json:"message"`
}

// Check finds mistakes in a script without running it: what cannot be parsed, unknown tools,
// and params that no call can have. It loads the whole registry, which it returns, unless the
// script cannot be parsed. The error is the cause of ctx, or that of an engine that failed.
func (s *Scripts) Check(ctx context.Context, file string, text []byte) ([]Finding, *registry.Registry, error) {
	uses, err := script.Check(ctx, script.Script{Name: file, Text: text, Limits: s.limits(), Engine: s.engine})
	findings := []Finding{}
	if f, ok := errors.AsType[*script.Failure](err); ok {
		return append(findings, Finding{At: f.At, Message: strings.TrimPrefix(f.Error(), f.At+": ")}), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(uses) == 0 {
		return findings, nil, nil
	}
	whole, err := s.finder.whole(ctx)
	if err != nil {
		return nil, whole, err
	}
	r := &scriptRun{Scripts: s}
	for _, use := range uses {
		name, err := r.name(ctx, use.Path)
		var f Found
		if err == nil {
			f, err = s.finder.Find(ctx, name, Query{})
			err = s.noServer(ctx, use.Path, err)
		}
		if err != nil {
			if len(use.Path) == 1 && !use.Called && s.isServer(ctx, use.Path[0]) {
				continue // its tools are named elsewhere
			}
			findings = append(findings, Finding{use.At, strings.Join(use.Path, "."), err.Error()})
			continue
		}
		if use.Called {
			findings = append(findings, checkUse(ctx, f, &use)...)
		}
	}
	return findings, whole, nil
}

func (s *Scripts) isServer(ctx context.Context, name string) bool {
	return slices.ContainsFunc(s.finder.of(ctx).sources.all(), func(source registry.Source) bool {
		server, ok := registry.ServerOf(source.Name())
		return ok && server == name
	})
}

// checkUse checks the params of a call as far as its text has them.
func checkUse(ctx context.Context, f Found, use *script.Mention) (findings []Finding) {
	if use.Args > 0 {
		return []Finding{{use.At, f.Tool.Name, f.Tool.Name + ": params are given by name"}}
	}
	params := jsonx.NewObject()
	unknown := map[string]bool{}
	places, order := map[string]string{}, map[string]int{use.At: -1}
	for i, p := range use.Params {
		places[p.Name], order[p.At] = p.At, i
		value := jsonx.NewNull()
		if p.Value == nil {
			unknown[p.Name] = true
		} else if v, err := jsonx.Parse(p.Value, jsonx.Options{}); err == nil {
			value = v
		}
		params.Set(p.Name, value)
	}
	invalid, ok := errors.AsType[*registry.ArgsError](f.Registry.Validate(ctx, f.Tool, params.JSON()))
	if !ok {
		return nil
	}
	for _, v := range invalid.Violations {
		param, _, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		param = strings.NewReplacer("~1", "/", "~0", "~").Replace(param)
		switch {
		case unknown[param] && v.Keyword != "additionalProperties":
			continue // only known when the script runs
		case v.Pointer == "" && v.Keyword == "required" && use.Open:
			continue
		case v.Pointer == "" && v.Keyword != "required" && v.Keyword != "additionalProperties" && (use.Open || len(unknown) > 0):
			continue // a combination of params
		}
		at := use.At
		if places[param] != "" {
			at = places[param]
		}
		message := v.Message
		if v.Pointer != "" {
			message = v.Pointer[1:] + ": " + message
		}
		findings = append(findings, Finding{at, f.Tool.Name, fmt.Sprintf("%s: %s", f.Tool.Name, message)})
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(order[a.At], order[b.At]) })
	return findings
}
