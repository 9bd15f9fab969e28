package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/registry"
)

// presetFlag adds --preset, which narrows the registry of the command (spec
// section 6.1).
func presetFlag(a *app, f *pflag.FlagSet) {
	f.StringVar(&a.preset, "preset", "", "only the tools of a `preset`: "+strings.Join(builtin.Presets(), ", "))
}

// checkPreset refuses a preset that is none.
func (a *app) checkPreset() error {
	if a.preset == "" || slices.Contains(builtin.Presets(), a.preset) {
		return nil
	}
	return &usageError{err: fmt.Errorf("unknown preset %q", a.preset), hint: "one of " + strings.Join(builtin.Presets(), ", ")}
}

// presetFilters hide the built-in tools that are not in the preset.
func (a *app) presetFilters() []registry.Filter {
	if a.preset == "" {
		return nil
	}
	return []registry.Filter{func(t *registry.Tool) *registry.Hidden {
		if t.Source != registry.SourceBuiltin || inPreset(a.preset, t) {
			return nil
		}
		return &registry.Hidden{Reason: "it is not in the preset " + a.preset, Setting: "--preset"}
	}}
}

// inPreset reports whether a tool is in a preset; "" holds all, and only "full"
// has tools that are not built in.
func inPreset(preset string, t *registry.Tool) bool {
	return preset == "" || preset == "full" || t.Source == registry.SourceBuiltin && builtin.InPreset(preset, t.Name)
}

// narrow drops the sources that no tool of the preset comes from: only "full"
// has tools that are not built in.
func (s *sources) narrow(preset string) {
	if preset == "" || preset == "full" {
		return
	}
	s.local = slices.DeleteFunc(s.local, func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	s.servers, s.off = nil, nil
}
