package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// shapes returns the documents that the program prints as JSON, named as in the blocks of
// the documentation: "servers[] mcpclient.Info" is an object with a list. Documents whose
// static type does not describe them, such as messages of providers, are left out.
func (s *source) shapes() []string {
	var found []string
	s.calls(func(p *packages.Package, name string, call *ast.CallExpr) {
		switch name {
		case "cli.PrintJSON", "cli.PrintLine", "cli.EncodeJSON", "cli.NoteJSON", "cli.Report", "cli.PrintResult", "cli.PrintText":
		default:
			return
		}
		if shape := shapeOf(p, call.Args[0]); shape != "" {
			found = append(found, shape)
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// shapeOf returns the name of the shape of an expression; "" if its static type does not
// describe it.
func shapeOf(p *packages.Package, e ast.Expr) string {
	t := p.TypesInfo.TypeOf(e)
	if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
		if m, ok := t.(*types.Map); ok {
			key := strings.Trim(lit.Elts[0].(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value, `"`)
			list, isList := m.Elem().(*types.Slice)
			if isList {
				return key + "[] " + typeName(list.Elem())
			}
			return key + " " + typeName(m.Elem())
		}
	}
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if name := typeName(t); strings.Contains(name, ".") && name != "json.RawMessage" {
		return name
	}
	if _, ok := t.(*types.Struct); ok {
		return "a struct without a name in package " + p.Name
	}
	return ""
}

func typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return path.Base(p.Path()) })
}

const shapeHead = "| field | type | meaning |\n|---|---|---|\n"

// shapeTable returns a shape as a table of fields in Markdown.
func (s *source) shapeTable(shape string) (string, error) {
	prefix, name, wrapped := strings.Cut(shape, " ")
	if !wrapped {
		prefix, name = "", shape
	}
	if name == "int" {
		return shapeHead + "| " + code(prefix) + " | number | |\n", nil
	}
	t, err := s.named(name)
	if err != nil {
		return "", err
	}
	w := shapeWriter{source: s}
	w.WriteString(shapeHead)
	if wrapped {
		prefix += "."
	}
	if err := w.fields(t, prefix); err != nil {
		return "", fmt.Errorf("%s: %w", shape, err)
	}
	return w.String(), nil
}

// special returns descriptions of types that have their own sections, because many
// documents contain them, and of types that encode themselves.
func special() map[string]string {
	return map[string]string{
		"json.RawMessage":     "any",
		"time.Time":           "time (RFC 3339)",
		"policy.Decision":     "allow, sandbox, ask, deny",
		"settings.Scope":      "default, system, user, project, file, environment, flag",
		"registry.Content":    "[content](#content)",
		"registry.Location":   "{path, line}, or {pathBytes (Base64), line} if the path is not UTF-8",
		"registry.Display":    "string or object",
		"registry.Diagnostic": "[diagnostic](#diagnostic)",
		"registry.Definition": "[definition](#definition)",
		"cli.ErrorBody":       "[error](#error)",
		"callcmd.Document":    "[result](#result)",
		"listcmd.cost":        "[cost](#cost)",
		"mcpclient.Info":      "[server](#server)",
	}
}

// shapeWriter writes the rows of one table.
type shapeWriter struct {
	*source
	strings.Builder
	within []types.Type // the structs that contain the field
}

func (w *shapeWriter) fields(t types.Type, prefix string) error {
	structure, ok := t.Underlying().(*types.Struct)
	if !ok {
		return fmt.Errorf("%s is not a struct", t)
	}
	w.within = append(w.within, t)
	defer func() { w.within = w.within[:len(w.within)-1] }()
	for i := range structure.NumFields() {
		f := structure.Field(i)
		name, options, _ := strings.Cut(reflect.StructTag(structure.Tag(i)).Get("json"), ",")
		switch {
		case name == "-" || !f.Exported() && !f.Embedded():
			continue
		case f.Embedded() && name == "" && strings.HasPrefix(special()[typeName(deref(f.Type()))], "["):
			fmt.Fprintf(w, "| %s | | all fields of a %s |\n", code(prefix+"…"), special()[typeName(deref(f.Type()))])
			continue
		case f.Embedded() && name == "":
			if err := w.fields(deref(f.Type()), prefix); err != nil {
				return err
			}
			continue
		case name == "":
			name = f.Name()
		}
		if err := w.field(f, prefix+name, strings.Contains(options, "omit")); err != nil {
			return err
		}
	}
	return nil
}

// field writes a row for a field, and rows for the fields of the struct that it holds.
func (w *shapeWriter) field(f *types.Var, path string, optional bool) error {
	kind, inner, mark, err := w.kind(f.Type())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if optional {
		kind += "?"
	}
	comment := w.comments[place(w.packages[0].Fset, f.Pos(), f.Name())]
	if rest, ok := strings.CutPrefix(comment, f.Name()+" "); ok {
		comment = code(path[strings.LastIndex(path, ".")+1:]) + " " + rest
	}
	fmt.Fprintf(w, "| %s | %s | %s |\n", code(path), kind, cell(comment))
	if inner == nil || slices.ContainsFunc(w.within, func(t types.Type) bool { return t.String() == inner.String() }) {
		return nil
	}
	return w.fields(inner, path+mark+".")
}

// kind returns the description of a type. If the type holds a struct whose fields follow,
// it also returns the struct and the text between the names of the field and its fields.
func (w *shapeWriter) kind(t types.Type) (words string, inner types.Type, mark string, err error) {
	t = deref(t)
	if words, ok := special()[typeName(t)]; ok {
		return words, nil, "", nil
	}
	for _, method := range []string{"MarshalJSON", "MarshalText"} {
		if m, _, _ := types.LookupFieldOrMethod(t, true, nil, method); m != nil {
			return "", nil, "", fmt.Errorf("%s encodes itself; describe it in special", typeName(t))
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return w.basic(t, u), nil, "", nil
	case *types.Slice:
		if u.Elem().String() == "byte" {
			return "string (Base64)", nil, "", nil
		}
		words, inner, mark, err = w.kind(u.Elem())
		return "list of " + plural(words), inner, "[]" + mark, err
	case *types.Map:
		words, inner, mark, err = w.kind(u.Elem())
		return "object of " + plural(words), inner, ".NAME" + mark, err
	case *types.Struct:
		return "object", t, "", nil
	}
	return "any", nil, "", nil
}

func (w *shapeWriter) basic(t types.Type, b *types.Basic) string {
	switch {
	case b.Info()&types.IsBoolean != 0:
		return "boolean"
	case b.Info()&types.IsNumeric != 0:
		return "number"
	}
	if n, ok := t.(*types.Named); ok {
		if choices := w.choices(n); len(choices) > 0 {
			return strings.Join(choices, ", ")
		}
	}
	return "string"
}

func plural(words string) string {
	switch words {
	case "string", "number", "boolean", "object", "[diagnostic](#diagnostic)",
		"[definition](#definition)", "[cost](#cost)":
		return strings.Replace(words, "](", "s](", 1) + strings.Repeat("s", 1-strings.Count(words, "]("))
	}
	return words
}

func deref(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}
