package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// undocumented is the meaning of a code that is not yet described.
const undocumented = "(undocumented)"

// diagnosticCodes returns the codes of diagnostics: the constants in literals of
// registry.Diagnostic, and the constant arguments of functions that use them there.
func (s *source) diagnosticCodes() []string {
	var codes []string
	params := map[types.Object]bool{} // params and variables that become codes
	for again := true; again; {
		again = false
		note := func(p *packages.Package, e ast.Expr) {
			if v := p.TypesInfo.Types[e].Value; v != nil {
				codes = append(codes, constant.StringVal(v))
				return
			}
			name, ok := e.(*ast.Ident)
			if !ok {
				return
			}
			if obj := p.TypesInfo.Uses[name]; !params[obj] {
				params[obj], again = true, true
			}
		}
		codes = nil
		s.codeExprs(params, note)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// codeExprs visits the expressions that become codes: of literals, of params in
// calls, and of assignments to variables that are known to become codes.
func (s *source) codeExprs(params map[types.Object]bool, visit func(*packages.Package, ast.Expr)) {
	for _, p := range s.packages {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if t := p.TypesInfo.TypeOf(n); t != nil && typeName(t) == "registry.Diagnostic" {
						visitCode(p, n, visit)
					}
				case *ast.CallExpr:
					visitArguments(p, n, params, visit)
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if len(n.Lhs) == len(n.Rhs) && becomesCode(p, left, params) {
							visit(p, n.Rhs[i])
						}
					}
				}
				return true
			})
		}
	}
}

// becomesCode reports whether a variable is known to become a code, or is the field Code
// of a diagnostic.
func becomesCode(p *packages.Package, left ast.Expr, params map[types.Object]bool) bool {
	switch left := left.(type) {
	case *ast.Ident:
		return params[p.TypesInfo.ObjectOf(left)]
	case *ast.SelectorExpr:
		t := p.TypesInfo.TypeOf(left.X)
		return left.Sel.Name == "Code" && t != nil && typeName(deref(t)) == "registry.Diagnostic"
	}
	return false
}

func visitCode(p *packages.Package, lit *ast.CompositeLit, visit func(*packages.Package, ast.Expr)) {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
				visit(p, kv.Value)
			}
		}
	}
}

// visitArguments visits the arguments for params that become codes.
func visitArguments(p *packages.Package, call *ast.CallExpr,
	params map[types.Object]bool, visit func(*packages.Package, ast.Expr)) {
	t := p.TypesInfo.TypeOf(call.Fun)
	if t == nil {
		return
	}
	signature, ok := t.Underlying().(*types.Signature)
	if !ok {
		return
	}
	for i := range min(signature.Params().Len(), len(call.Args)) {
		for param := range params {
			if param != nil && param.Pos() == signature.Params().At(i).Pos() {
				visit(p, call.Args[i])
			}
		}
	}
}

var codeRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

// codeTable returns a table of codes with the meanings that the page already has.
func codeTable(codes []string, old string) string {
	meanings := map[string]string{}
	for _, m := range codeRow.FindAllStringSubmatch(old, -1) {
		meanings[m[1]] = m[2]
	}
	var b strings.Builder
	b.WriteString("| code | meaning |\n|---|---|\n")
	for _, c := range codes {
		meaning := meanings[c]
		if meaning == "" {
			meaning = undocumented
		}
		fmt.Fprintf(&b, "| %s | %s |\n", code(c), meaning)
	}
	return b.String()
}
