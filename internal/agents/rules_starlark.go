package agents

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.starlark.net/syntax"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// call is a call in a Starlark file.
type call struct {
	name string
	line int
	args map[string]any // a string, a []any, or nil for other literals
}

// readCalls returns the calls in a Starlark file without evaluating anything. Every statement
// must be a call with named arguments that are literals. The error has the line that cannot be read.
func readCalls(f RuleFile) ([]call, error) {
	if !utf8.Valid(f.Data) {
		return nil, fmt.Errorf("%s is not valid UTF-8", f.Path)
	}
	file, err := (&syntax.FileOptions{}).Parse(f.Path, f.Data, 0)
	var calls []call
	for i := 0; err == nil && i < len(file.Stmts); i++ {
		var c call
		c, err = readCall(file.Stmts[i])
		calls = append(calls, c)
	}
	if bad, ok := errors.AsType[syntax.Error](err); ok {
		err = document.NewError([]document.Problem{
			{File: f.Path, Line: int(bad.Pos.Line), Col: int(bad.Pos.Col), Message: bad.Msg}})
	}
	return calls, err
}

func unreadable(n syntax.Node, format string, args ...any) error {
	start, _ := n.Span()
	return syntax.Error{Pos: start, Msg: fmt.Sprintf(format, args...)}
}

func readCall(stmt syntax.Stmt) (call, error) {
	var name *syntax.Ident
	var made *syntax.CallExpr
	if expr, ok := stmt.(*syntax.ExprStmt); ok {
		if made, ok = expr.X.(*syntax.CallExpr); ok {
			name, _ = made.Fn.(*syntax.Ident)
		}
	}
	if name == nil {
		return call{}, unreadable(stmt, "expected a call such as prefix_rule(…); nothing else is read")
	}
	c := call{name: name.Name, line: int(name.NamePos.Line), args: map[string]any{}}
	for _, arg := range made.Args {
		pair, _ := arg.(*syntax.BinaryExpr)
		if pair == nil || pair.Op != syntax.EQ {
			return c, unreadable(arg, "%s: expected an argument NAME = VALUE", c.name)
		}
		key := pair.X.(*syntax.Ident).Name // the parser takes nothing else
		if _, twice := c.args[key]; twice {
			return c, unreadable(arg, "%s: %s is given twice", c.name, key)
		}
		value, err := readLiteral(pair.Y)
		if err != nil {
			return c, err
		}
		c.args[key] = value
	}
	return c, nil
}

func readLiteral(e syntax.Expr) (any, error) {
	switch e := e.(type) {
	case *syntax.Literal:
		if value, ok := e.Value.(string); ok && e.Token == syntax.STRING {
			return value, nil
		}
	case *syntax.Ident:
		if e.Name == "True" || e.Name == "False" || e.Name == "None" {
			return nil, nil
		}
	case *syntax.ListExpr:
		list := []any{}
		for _, element := range e.List {
			value, err := readLiteral(element)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return nil, unreadable(e, "expected a string or a list; values are read, not computed")
}
