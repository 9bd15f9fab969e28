package shell

import (
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// maxFunctions is the maximum number of functions that are analyzed.
const maxFunctions = 100

// forkBomb returns the reason why the statements may be a fork bomb: a function
// that starts a second copy of itself while it runs. It returns "" if they are
// not.
func (r *reader) forkBomb(stmts []*syntax.Stmt) string {
	bodies := map[string]*syntax.Stmt{}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
				bodies[f.Name.Value] = f.Body
			}
			return true
		})
	}
	if len(bodies) > maxFunctions {
		return fmt.Sprintf("the line declares more than %d functions", maxFunctions)
	}
	for name, body := range bodies {
		for called := range r.calls(body, true) {
			if called == name || r.reaches(bodies, called, name, map[string]bool{}) {
				return "the function " + name + " starts copies of itself"
			}
		}
	}
	return ""
}

// calls returns the programs that a statement names. If beside is set, it returns
// only those that run concurrently with other commands, in the background or in a
// pipe.
func (r *reader) calls(root syntax.Node, beside bool) map[string]bool {
	out := map[string]bool{}
	if root == nil {
		return out
	}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if words := r.words(n.Args); !beside && len(words) > 0 {
				out[words[0].text] = true
			}
		case *syntax.Stmt:
			if beside && (n.Background || n.Coprocess) {
				addAll(out, r.calls(n.Cmd, false))
			}
		case *syntax.BinaryCmd:
			if beside && (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) {
				addAll(out, r.calls(n, false))
			}
		}
		return true
	})
	return out
}

func addAll(to, from map[string]bool) {
	for name := range from {
		to[name] = true
	}
}

func (r *reader) reaches(bodies map[string]*syntax.Stmt, from, to string, seen map[string]bool) bool {
	if seen[from] || bodies[from] == nil {
		return false
	}
	seen[from] = true
	for called := range r.calls(bodies[from], false) {
		if called == to || r.reaches(bodies, called, to, seen) {
			return true
		}
	}
	return false
}
