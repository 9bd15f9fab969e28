package main

import (
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/registry"
)

// hidden finds the tool that a name would mean if no setting kept it out: by
// its name, an alias, server__tool or name@version. nil: there is none.
func (a *app) hidden(reg *registry.Registry, name string) *registry.Hidden {
	plain := name
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		plain = name[:i]
	}
	canonical := builtin.Aliases()[plain]
	for _, h := range reg.Hidden() {
		server, isMCP := strings.CutPrefix(h.Source, registry.MCPPrefix)
		qualified := server + "__" + h.Name
		switch {
		case h.Name == name, h.Name == plain,
			canonical != "" && h.Source == registry.SourceBuiltin && h.Name == canonical,
			isMCP && (qualified == plain || registry.ValidName(qualified) == plain):
			return &h
		}
	}
	for _, off := range a.sources.off {
		if strings.HasPrefix(plain, off.Name+"__") || strings.HasPrefix(plain, registry.ValidName(off.Name+"__")) {
			return &registry.Hidden{Name: plain, Source: registry.MCPPrefix + off.Name, Reason: "its server is " + off.reason(), Setting: off.setting()}
		}
	}
	return nil
}
