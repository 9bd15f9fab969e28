package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
)

// unmet returns the first condition of a rule that the call does not meet, or ""
// if it meets all. It leaves the condition command to [facts.ruleCommand].
func (f *facts) unmet(r *Rule) string {
	if c := f.unmetName(r); c != "" {
		return c
	}
	if !f.rulePaths(r) {
		return conditionPath
	}
	if !f.ruleWhen(r) {
		return conditionWhen
	}
	return ""
}

// rulePaths reports whether the rule's path matches: for a rule that loosens all
// paths of the call, for other rules any of them.
func (f *facts) rulePaths(r *Rule) bool {
	if r.Path == "" {
		return true
	}
	if f.isBlindTo(r) {
		return !r.isNarrow()
	}
	return f.onPaths.get(r, func() bool { return f.matchPaths(r) }) // the same for each part of a line
}

func (f *facts) matchPaths(r *Rule) bool {
	w := f.where()
	named := func(p string) bool { return w.match(r, w.name(p)) }
	paths := f.paths.get(func() (out []pathname) {
		for _, p := range f.subject.Paths {
			out = append(out, w.name(p))
		}
		return out
	})
	if r.isNarrow() {
		return len(paths) > 0 && !f.unplaced &&
			!slices.ContainsFunc(paths, func(p pathname) bool { return !w.match(r, p) }) &&
			!slices.ContainsFunc(f.fallbacks, func(p string) bool { return !named(p) })
	}
	return slices.ContainsFunc(paths, func(p pathname) bool { return w.match(r, p) }) ||
		slices.ContainsFunc(f.trees, func(p string) bool { return named(p) || w.mayHold(p, r) })
}

// ruleWhen reports whether the rule's expression is true for the params: in every shape if the rule
// loosens, otherwise in any. If the expression fails, the result is false for a rule that loosens
// and true for other rules. For a tool as a whole, which has no params, it is false.
func (f *facts) ruleWhen(r *Rule) bool {
	if r.When == nil {
		return true
	}
	if f.call == nil {
		return false
	}
	e := f.evaluate(r.When)
	if r.isNarrow() {
		return e.all && e.err == nil
	}
	return e.any || e.err != nil
}

// evaluate evaluates an expression over the params, once for all parts of a
// command line.
func (f *facts) evaluate(when *jq.Expression) evaluated {
	return f.evaluations.get(when, func() evaluated {
		shapes := f.shapes.get(f.inShapes)
		e := evaluated{all: true, err: shapes.err}
		for _, s := range shapes.list {
			ok, err := s.isTrue(f.ctx, when)
			e.all, e.any, e.err = e.all && ok, e.any || ok, cmp.Or(e.err, err)
		}
		return e
	})
}

func (f *facts) inShapes() (out shapes) {
	all := []json.RawMessage{f.call.Params}
	if f.tool.Shapes != nil {
		all, out.err = f.tool.Shapes(*f.call)
	}
	for _, u := range f.subject.URLs { // as the tool reads the param
		for _, params := range all {
			if v, _ := jsonx.Parse(params, jsonx.Options{}); v.Get("url") != nil {
				v.Set("url", jsonx.NewString(u))
				all = append(all, v.JSON())
			}
		}
	}
	for _, params := range all {
		if !slices.ContainsFunc(out.list, func(s *shape) bool { return bytes.Equal(s.params, params) }) {
			out.list = append(out.list, &shape{params: params})
		}
	}
	return out
}

// where returns the folders that paths are relative to.
func (f *facts) where() *places {
	return f.places.get(func() *places {
		workspace := filepath.ToSlash(f.policy.Workspace)
		p := &places{root: filepath.ToSlash(cmp.Or(f.policy.Root, f.policy.Workspace)), workspace: workspace}
		p.realRoot, p.realWorkspace = realPath(p.root), realPath(workspace)
		return p
	})
}
