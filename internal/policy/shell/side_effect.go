package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect adds redirections that write files, or that read from the network.
func (a *analysis) redirect(r *syntax.Redirect) {
	text := a.textOf(r)
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		a.doubt(text, "it sets the variable %s", r.N.Value)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	}
	targets := a.list(r.Word)
	if len(targets) == 0 {
		a.doubt(text, "its target is not known before the line runs")
	}
	for _, target := range targets {
		a.redirected(text, r.Op, target)
	}
}

// redirected adds the effect of a redirection to one target, as far as the target
// is known.
func (a *analysis) redirected(text string, op syntax.RedirOperator, target word) {
	switch op {
	case syntax.RdrIn:
		if !target.known || strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/") {
			a.doubt(text, "it reads from a place that is not known before it runs")
		}
		return
	case syntax.DplIn, syntax.DplOut:
		fd := strings.TrimSuffix(target.text, "-") // "-" closes a descriptor, "3-" moves one
		if target.known && target.text != "" && strings.Trim(fd, "0123456789") == "" {
			return
		}
		// Bash expands the file name twice here, even if it is quoted, and other shells
		// begin a new word after >&-.
		if !target.known || strings.ContainsAny(target.text, "$`<>(") || strings.HasPrefix(target.text, "-") {
			a.unread(text, "%s", text)
			return
		}
	}
	if target.known && (target.text == "/dev/null" || target.text == "/dev/stdout" || target.text == "/dev/stderr") {
		return
	}
	if a.isDisk(target) {
		a.add(Command{Text: text, Catastrophic: "it writes to the disk " + target.text})
	}
	a.write(target.text)
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

// param adds parameter expansions that set variables or evaluate their values.
func (a *analysis) param(p *syntax.ParamExp) {
	a.evaluate = a.evaluate || p.Excl || p.Index != nil || p.Slice != nil
	if p.Excl {
		a.doubt(a.textOf(p), "an indirect expansion is not known before the line runs")
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		a.doubt(a.textOf(p), "the expansion sets a variable")
	case syntax.OtherParamOps:
		a.evaluate = true
		a.add(Command{Text: a.textOf(p), Doubt: "the expansion may run what a variable holds", dynamic: a.word(p.Exp.Word).text == "P"})
	}
}

// test adds conditions that evaluate their operands as arithmetic, where a
// subscript can contain a command.
func (a *analysis) test(n syntax.Node) {
	var operands []syntax.TestExpr
	switch n := n.(type) {
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			operands = []syntax.TestExpr{n.X, n.Y}
		}
	case *syntax.UnaryTest:
		switch n.Op {
		case syntax.TsVarSet, syntax.TsRefVar:
			operands = []syntax.TestExpr{n.X}
		}
	}
	if operands == nil {
		return
	}
	a.evaluate = true
	c := Command{Text: a.textOf(n), Doubt: "the condition evaluates its operands"}
	for _, x := range operands {
		if w, ok := x.(*syntax.Word); ok {
			c.dynamic = c.dynamic || evaluated(a.word(w))
		}
	}
	a.add(c)
}
