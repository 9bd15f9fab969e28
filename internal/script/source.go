package script

import (
	"encoding/json"
	"math/big"
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Mention is a use of a tool in the text of a script.
type Mention struct {
	Path   []string `json:"path"` // name of the tool, or of a server and its tool
	At     string   `json:"at"`   // FILE:LINE:COL
	Called bool     `json:"called,omitempty"`
	Open   bool     `json:"open,omitempty"`       // the call may have more params than Params
	Args   int      `json:"positional,omitempty"` // params without a name
	Params []Given  `json:"params,omitempty"`
}

// Given is a param of a call in the text.
type Given struct {
	Name  string          `json:"name"`
	At    string          `json:"at"`
	Value json.RawMessage `json:"value,omitempty"` // nil means it is only known when the script runs
}

// mentions returns the places that use tools whose names are literals, in the order of the text.
func mentions(f *syntax.File) []Mention {
	var out []Mention
	seen := map[syntax.Node]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil || seen[n] {
			return n != nil
		}
		switch n := n.(type) {
		case *syntax.CallExpr:
			if path := toolOf(n.Fn); len(path) > 0 {
				out = append(out, toolCall(n, path))
				seen[n.Fn] = true
				markName(n.Fn, seen)
			} else if m, ok := byName(n); ok {
				out = append(out, m)
			}
		case *syntax.DotExpr, *syntax.IndexExpr:
			if path := toolOf(n.(syntax.Expr)); len(path) > 0 {
				out = append(out, Mention{Path: path, At: startOf(n), Open: true})
				markName(n.(syntax.Expr), seen)
			}
		}
		return true
	})
	return out
}

// markName marks the expressions that the name of a tool consists of.
func markName(x syntax.Expr, seen map[syntax.Node]bool) {
	for {
		switch y := x.(type) {
		case *syntax.DotExpr:
			x = y.X
		case *syntax.IndexExpr:
			x = y.X
		default:
			return
		}
		seen[x] = true
	}
}

func startOf(n syntax.Node) string { return syntax.Start(n).String() }

// toolOf returns the path in an expression such as tools.a or tools["a"].b; nil for other
// expressions.
func toolOf(x syntax.Expr) []string {
	var of syntax.Expr
	var name string
	switch x := x.(type) {
	case *syntax.DotExpr:
		of, name = x.X, x.Name.Name
	case *syntax.IndexExpr:
		text, ok := stringOf(x.Y)
		if !ok {
			return nil
		}
		of, name = x.X, text
	case *syntax.ParenExpr:
		return toolOf(x.X)
	default:
		return nil
	}
	if isPredeclared(of, "tools") {
		return []string{name}
	}
	if before := toolOf(of); len(before) == 1 {
		return append(before, name)
	}
	return nil
}

// isPredeclared reports whether an expression is the predeclared name, not a variable.
func isPredeclared(x syntax.Expr, name string) bool {
	id, ok := x.(*syntax.Ident)
	if !ok || id.Name != name {
		return false
	}
	b, ok := id.Binding.(*resolve.Binding)
	return ok && b.Scope == resolve.Predeclared
}

func stringOf(x syntax.Expr) (string, bool) {
	l, ok := x.(*syntax.Literal)
	if !ok {
		return "", false
	}
	s, ok := l.Value.(string)
	return s, ok && l.Token == syntax.STRING
}

// toolCall returns a call of tools.NAME.
func toolCall(c *syntax.CallExpr, path []string) Mention {
	m := Mention{Path: path, At: startOf(c), Called: true}
	for _, arg := range c.Args {
		switch x := arg.(type) {
		case *syntax.BinaryExpr:
			if id, ok := x.X.(*syntax.Ident); ok && x.Op == syntax.EQ {
				m.Params = append(m.Params, Given{id.Name, startOf(x), constant(x.Y)})
				continue
			}
		case *syntax.UnaryExpr:
			if d, ok := x.X.(*syntax.DictExpr); ok && x.Op == syntax.STARSTAR {
				m.dict(d)
				continue
			}
			if x.Op == syntax.STARSTAR {
				m.Open = true
				continue
			}
		}
		m.Args++
	}
	return m
}

// byName returns a call of call(name, params) or describe(name) whose name is a literal.
func byName(c *syntax.CallExpr) (Mention, bool) {
	describes := isPredeclared(c.Fn, "describe")
	if !describes && !isPredeclared(c.Fn, "call") || len(c.Args) == 0 {
		return Mention{}, false
	}
	name, ok := stringOf(argValue(c.Args[0], "name"))
	if !ok {
		return Mention{}, false
	}
	m := Mention{Path: []string{name}, At: startOf(c), Called: !describes}
	if len(c.Args) > 1 {
		if d, ok := argValue(c.Args[1], "params").(*syntax.DictExpr); ok {
			m.dict(d)
		} else {
			m.Open = true
		}
	}
	return m, true
}

// argValue returns the value of an argument that may be given by name.
func argValue(arg syntax.Expr, name string) syntax.Expr {
	if b, ok := arg.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
		if id, ok := b.X.(*syntax.Ident); ok && id.Name == name {
			return b.Y
		}
	}
	return arg
}

func (m *Mention) dict(d *syntax.DictExpr) {
	for _, entry := range d.List {
		kv := entry.(*syntax.DictEntry)
		if name, ok := stringOf(kv.Key); ok {
			m.Params = append(m.Params, Given{name, startOf(kv), constant(kv.Value)})
		} else {
			m.Open = true
		}
	}
}

// constant returns a literal value as JSON; nil for other expressions.
func constant(x syntax.Expr) json.RawMessage {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		return constant(x.X)
	case *syntax.Ident:
		for name, value := range map[string]string{"True": "true", "False": "false", "None": "null"} {
			if x.Name == name {
				return json.RawMessage(value)
			}
		}
	case *syntax.Literal:
		switch v := x.Value.(type) {
		case string:
			if x.Token == syntax.STRING {
				return jsonx.AppendQuote(nil, validText(v))
			}
		case int64, *big.Int, float64:
			raw, err := json.Marshal(v)
			if err == nil {
				return raw
			}
		}
	case *syntax.UnaryExpr:
		if raw := constant(x.X); x.Op == syntax.MINUS && raw != nil && raw[0] >= '0' && raw[0] <= '9' {
			return append(json.RawMessage("-"), raw...)
		}
	case *syntax.ListExpr:
		return joinConstants('[', ']', x.List, constant)
	case *syntax.TupleExpr:
		return joinConstants('[', ']', x.List, constant)
	case *syntax.DictExpr:
		return joinConstants('{', '}', x.List, func(entry syntax.Expr) json.RawMessage {
			kv := entry.(*syntax.DictEntry)
			name, ok := stringOf(kv.Key)
			value := constant(kv.Value)
			if !ok || value == nil {
				return nil
			}
			return append(append(jsonx.AppendQuote(nil, validText(name)), ':'), value...)
		})
	}
	return nil
}

// joinConstants returns a list or an object; nil if one of its items is not constant.
func joinConstants(begin, end byte, items []syntax.Expr, convert func(syntax.Expr) json.RawMessage) json.RawMessage {
	out := json.RawMessage{begin}
	for i, x := range items {
		raw := convert(x)
		if raw == nil {
			return nil
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, end)
}

// globalsOf returns the global variables that the functions of a script use, by the places of
// the functions.
func globalsOf(f *syntax.File) map[syntax.Position][]string {
	out := map[syntax.Position][]string{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch fn := n.(type) {
		case *syntax.DefStmt:
			out[fn.Def] = globalsIn(fn)
			out[fn.Name.NamePos] = out[fn.Def]
		case *syntax.LambdaExpr:
			out[fn.Lambda] = globalsIn(fn)
		}
		return true
	})
	return out
}

func globalsIn(n syntax.Node) (names []string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			if b, ok := id.Binding.(*resolve.Binding); ok &&
				b.Scope == resolve.Global && !slices.Contains(names, id.Name) {
				names = append(names, id.Name)
			}
		}
		return true
	})
	return names
}

// IsIdentifier reports whether a name can be written as a variable of Starlark.
func IsIdentifier(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && !slices.Contains(reserved(), name)
}

func reserved() []string {
	return []string{"and", "as", "assert", "async", "await", "break", "class",
		"continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
		"global", "if", "import", "in", "is", "lambda", "load", "nonlocal", "not", "or", "pass", "raise",
		"return", "try", "while", "with", "yield", "True", "False", "None"}
}
