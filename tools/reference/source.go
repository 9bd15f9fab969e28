package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// source is the source code of the program with its types.
type source struct {
	packages []*packages.Package
	comments map[string]string // comments of struct fields, by position
}

// loadSource reads the packages that print documents and diagnostics, in the
// module at root.
func loadSource(root string) (*source, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	found, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, "./internal/...")
	if err != nil {
		return nil, err
	}
	s := &source{found, map[string]string{}}
	for _, p := range found {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		for _, file := range p.Syntax {
			s.readComments(p.Fset, file)
		}
	}
	return s, err
}

// readComments records the comments of struct fields, or else their descriptions for JSON Schema.
func (s *source) readComments(files *token.FileSet, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		structure, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range structure.Fields.List {
			text := f.Comment.Text()
			if text == "" {
				text = f.Doc.Text()
			}
			if text == "" && f.Tag != nil {
				text = reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("jsonschema")
			}
			for _, name := range f.Names {
				s.comments[place(files, name.Pos(), name.Name)] = strings.Join(strings.Fields(text), " ")
			}
		}
		return true
	})
}

// place identifies a field regardless of how its package was loaded.
func place(files *token.FileSet, at token.Pos, name string) string {
	p := files.Position(at)
	return fmt.Sprintf("%s:%d:%s", p.Filename, p.Line, name)
}

// calls visits the calls of the program's functions and methods with their names.
func (s *source) calls(visit func(p *packages.Package, name string, call *ast.CallExpr)) {
	for _, p := range s.packages {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f := called(p, call); f != nil && f.Pkg() != nil &&
						strings.Contains(f.Pkg().Path(), "/toolreg/internal/") {
						visit(p, path.Base(f.Pkg().Path())+"."+f.Name(), call)
					}
				}
				return true
			})
		}
	}
}

func called(p *packages.Package, call *ast.CallExpr) *types.Func {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return nil
	}
	f, _ := p.TypesInfo.Uses[name].(*types.Func)
	return f
}

// named returns the type with a qualified name such as audit.Entry.
func (s *source) named(name string) (types.Type, error) {
	pkg, own, _ := strings.Cut(name, ".")
	for _, p := range s.packages {
		if p.Name != pkg {
			continue
		}
		if obj, ok := p.Types.Scope().Lookup(own).(*types.TypeName); ok {
			return obj.Type(), nil
		}
	}
	return nil, fmt.Errorf("unknown type %s", name)
}

// choices returns the values of a type's constants, in the order of the source.
func (s *source) choices(t *types.Named) []string {
	var found []*types.Const
	for _, p := range s.packages {
		if p.PkgPath != t.Obj().Pkg().Path() {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			if c, ok := p.Types.Scope().Lookup(name).(*types.Const); ok && c.Type().String() == t.String() {
				found = append(found, c)
			}
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int { return int(a.Pos() - b.Pos()) })
	var values []string
	for _, c := range found {
		if text := constant.StringVal(c.Val()); text != "" {
			values = append(values, text)
		}
	}
	return values
}
