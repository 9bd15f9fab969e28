package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assigns notes variables set before a command or alone.
func (a *analysis) assigns(c *syntax.CallExpr) {
	for _, as := range c.Assigns {
		if as.Name == nil {
			continue
		}
		if len(c.Args) == 0 && as.Value != nil && as.Index == nil {
			a.consts[as.Name.Value] = a.word(as.Value).text
		}
		a.doubt(a.textOf(c), "it sets the variable %s", as.Name.Value)
	}
}

// redirect adds output that goes to a file and input that may
// come from the network.
func (a *analysis) redirect(r *syntax.Redirect) {
	text := a.textOf(r)
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		a.doubt(text, "it sets the variable %s", r.N.Value)
	}
	target := a.word(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
		if !target.known || strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/") {
			a.doubt(text, "it reads from a place that is not known before running")
		}
		return
	case syntax.DplIn, syntax.DplOut:
		fd := strings.TrimSuffix(target.text, "-") // "-" closes, "3-" moves
		if target.known && target.text != "" && strings.Trim(fd, "0123456789") == "" {
			return
		}
		if strings.HasPrefix(target.text, "-") { // to a shell the word begins behind >&-
			a.unread(text, "%s", text)
			return
		}
	}
	if target.known && (target.text == "/dev/null" || target.text == "/dev/stdout" || target.text == "/dev/stderr") {
		return
	}
	if target.text != "" {
		*a.writes = append(*a.writes, target.text)
	}
	a.doubt(text, "it writes to a file by redirection")
}

func (a *analysis) arithmetic(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.UnaryArithm:
		if n.Op == syntax.Inc || n.Op == syntax.Dec {
			a.doubt(a.textOf(n), "arithmetic sets a variable")
		}
	case *syntax.BinaryArithm:
		if op := n.Op.String(); strings.HasSuffix(op, "=") && op != "==" && op != "!=" && op != "<=" && op != ">=" {
			a.doubt(a.textOf(n), "arithmetic sets a variable")
		}
	}
}

// param adds expansions that set variables or evaluate what they hold.
func (a *analysis) param(p *syntax.ParamExp) {
	if p.Excl {
		a.doubt(a.textOf(p), "an indirect expansion is not known before running")
	}
	if holdsProcess(p) {
		a.unread(a.textOf(p), "a process substitution inside an expansion")
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		a.doubt(a.textOf(p), "the expansion sets a variable")
	case syntax.OtherParamOps:
		a.doubt(a.textOf(p), "the expansion may run what a variable holds")
	}
}

// test adds conditions that evaluate their operands as arithmetic, where
// a subscript may hold a command.
func (a *analysis) test(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			a.doubt(a.textOf(n), "the condition evaluates its operands")
		}
	case *syntax.UnaryTest:
		switch n.Op {
		case syntax.TsVarSet, syntax.TsRefVar:
			a.doubt(a.textOf(n), "the condition evaluates its operand")
		}
	}
}

// holdsProcess reports whether an expansion holds what bash takes for a process
// substitution and the parser for text.
func holdsProcess(p *syntax.ParamExp) bool {
	found := false
	syntax.Walk(p, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			found = found || strings.Contains(lit.Value, "<(") || strings.Contains(lit.Value, ">(")
		}
		return true
	})
	return found
}
