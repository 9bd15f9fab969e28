package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A change is one operator of a package that another one replaces.
type change struct {
	Type         string
	Line, Column int
	file         string // name of the file in the package's folder
	key          string // names the change in the package's list
	number       int    // selects the change in a binary; from 1 on

	alone bool // has a binary of its own, because it cannot be selected
	dead  bool // does not compile
}

// Kinds of changes, as gremlins calls them, that need more than another operator.
const (
	negation   = "CONDITIONALS_NEGATION"
	invertLoop = "INVERT_LOOPCTRL"
	removeSelf = "REMOVE_SELF_ASSIGNMENTS"
)

var negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ,
	token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
}

var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND,
	token.AND_NOT: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
	token.INC: token.DEC, token.DEC: token.INC, token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

// binaryOf returns the operator + of the assignment +=.
func binaryOf(assign token.Token) token.Token { return assign - token.ADD_ASSIGN + token.ADD }

func isOpAssign(tok token.Token) bool { return token.ADD_ASSIGN <= tok && tok <= token.AND_NOT_ASSIGN }

// replacement returns what the change puts in the place of tok.
func (c *change) replacement(tok token.Token) token.Token {
	switch {
	case c.Type == negation:
		return negated[tok]
	case c.Type == removeSelf:
		return token.ASSIGN
	case isOpAssign(tok):
		return swapped[binaryOf(tok)] - token.ADD + token.ADD_ASSIGN
	}
	return swapped[tok]
}

// A source is a package without its tests.
type source struct {
	dir   string
	set   *token.FileSet
	files map[string]*ast.File // by name
	text  map[string][]byte
	info  types.Info
	deps  types.Importer
}

// readSource reads the package in a folder, which must compile.
func readSource(dir string) (*source, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{dir: dir, set: token.NewFileSet(), files: map[string]*ast.File{}, text: map[string][]byte{}}
	s.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	out, err := exec.Command("go", "list",
		"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+dir, "strconv").Output()
	if err != nil {
		return nil, err
	}
	exported := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported[path] = file
	}
	s.deps = importer.ForCompiler(s.set, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	for _, name := range pkg.GoFiles {
		if s.text[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		if s.files[name], err = parser.ParseFile(s.set, name, s.text[name], parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	if errs := s.check(nil, &s.info); len(errs) > 0 {
		return nil, errs[0]
	}
	return s, nil
}

// check returns the errors of the package with other files in place of, or besides, its own.
func (s *source) check(other map[string][]byte, info *types.Info) []types.Error {
	var errs []types.Error
	files := maps.Clone(s.files)
	for name, text := range other {
		parsed, err := parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return []types.Error{{Fset: s.set, Msg: err.Error()}}
		}
		files[name] = parsed
	}
	conf := types.Config{Importer: s.deps, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok {
			errs = append(errs, e)
		}
	}}
	ordered := make([]*ast.File, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		ordered = append(ordered, files[name])
	}
	_, _ = conf.Check("p", s.set, ordered, info)
	return errs
}

// An edit puts text in the place of a part of a file.
type edit struct {
	from, to int
	text     string
	order    int // of edits at the same place: what ends there, what begins there, the operator
}

const (
	closing = iota
	opening
	operator
)

func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits,
		func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.order, b.order)) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return out.Bytes()
}

// A weaver edits one file. Its edits never add or remove a line.
type weaver struct {
	*source
	name  string
	text  []byte
	at    map[token.Position][]*change
	edits []edit
}

func (s *source) weaver(name string, changes []*change) *weaver {
	w := &weaver{source: s, name: name, text: s.text[name], at: map[token.Position][]*change{}}
	for _, c := range changes {
		if c.file == name {
			at := token.Position{Line: c.Line, Column: c.Column}
			w.at[at] = append(w.at[at], c)
		}
	}
	return w
}

func (w *weaver) offset(p token.Pos) int { return w.set.Position(p).Offset }

func (w *weaver) quote(n ast.Node) string { return string(w.text[w.offset(n.Pos()):w.offset(n.End())]) }

func (w *weaver) replace(at token.Pos, old, text string) {
	w.edits = append(w.edits, edit{w.offset(at), w.offset(at) + len(old), text, operator})
}

func (w *weaver) wrap(n ast.Node, before, after string) {
	w.edits = append(w.edits, edit{w.offset(n.Pos()), w.offset(n.Pos()), before, opening})
	// What ends at the same place is inside, and has been or will be wrapped later.
	w.edits = slices.Insert(w.edits, 0, edit{w.offset(n.End()), w.offset(n.End()), after, closing})
}

// eachOperator calls f for each operator that is to be changed, outer ones first.
func (w *weaver) eachOperator(f func(n ast.Node, pos token.Pos, tok token.Token, changes []*change)) {
	ast.Inspect(w.files[w.name], func(n ast.Node) bool {
		var pos token.Pos
		var tok token.Token
		switch n := n.(type) {
		case *ast.BinaryExpr:
			pos, tok = n.OpPos, n.Op
		case *ast.UnaryExpr:
			pos, tok = n.OpPos, n.Op
		case *ast.IncDecStmt:
			pos, tok = n.TokPos, n.Tok
		case *ast.AssignStmt:
			pos, tok = n.TokPos, n.Tok
		case *ast.BranchStmt:
			pos, tok = n.TokPos, n.Tok
		default:
			return true
		}
		p := w.set.Position(pos)
		if changes := w.at[token.Position{Line: p.Line, Column: p.Column}]; len(changes) > 0 {
			f(n, pos, tok, changes)
		}
		return true
	})
}

// single returns the file with one change.
func (s *source) single(c *change) []byte {
	w := s.weaver(c.file, []*change{c})
	w.eachOperator(func(n ast.Node, pos token.Pos, tok token.Token, _ []*change) {
		if n, ok := n.(*ast.BinaryExpr); ok { // which may bind more tightly, or less
			w.wrap(n, "(", ")")
			w.wrap(n.X, "(", ")")
			w.wrap(n.Y, "(", ")")
		}
		w.replace(pos, tok.String(), c.replacement(tok).String())
	})
	return apply(w.text, w.edits)
}

// all returns the file with all changes that can be selected.
func (s *source) all(name string, changes []*change) []byte {
	w := s.weaver(name, slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.alone || c.dead }))
	w.eachOperator(func(n ast.Node, pos token.Pos, tok token.Token, changes []*change) {
		on := func(is func(*change) bool) string {
			text := ""
			for _, c := range changes {
				if is(c) {
					text += fmt.Sprintf(" || mutant == %d", c.number)
				}
			}
			return strings.TrimPrefix(cmp.Or(text, "false"), " || ")
		}
		negates := on(func(c *change) bool { return c.Type == negation })
		drops := on(func(c *change) bool { return c.Type == removeSelf })
		swaps := on(func(c *change) bool { return c.Type != negation && c.Type != removeSelf })
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if negates != "false" {
				w.wrap(n, "mutantNot("+negates+", ", ")")
			}
			switch {
			case swaps == "false":
			case tok == token.LAND || tok == token.LOR:
				w.wrap(n, fmt.Sprintf("mutant%d(%s, ", tok, swaps), ") })")
				// The parenthesis is needed because the line may end here.
				w.replace(pos, tok.String(), ", func() bool { return (")
			case negated[tok] != 0:
				w.wrap(n, fmt.Sprintf("mutant%d%s(%s, ", tok, w.instance(n.X), swaps), ")")
				w.replace(pos, tok.String(), ",")
			default:
				w.wrap(n, fmt.Sprintf("mutant%d%s(%s, false, ", tok, w.instance(n), swaps), ")")
				w.replace(pos, tok.String(), ",")
			}
		case *ast.UnaryExpr:
			w.wrap(n, fmt.Sprintf("mutantNegative%s(%s, ", w.instance(n), swaps), ")")
			w.replace(pos, tok.String(), "")
		case *ast.IncDecStmt:
			w.replace(pos, tok.String(), fmt.Sprintf(" %c= mutantOne(%s, %s)", tok.String()[0], swaps, w.quote(n.X)))
		case *ast.AssignStmt:
			f := fmt.Sprintf("mutant%d(%s, ", binaryOf(tok), swaps)
			if w.isText(n.Lhs[0]) {
				f = "mutantJoin("
			}
			w.replace(pos, tok.String(), fmt.Sprintf("= %s%s, %s, ", f, drops, w.quote(n.Lhs[0])))
			w.wrap(n.Rhs[0], "", ")")
		case *ast.BranchStmt:
			w.replace(pos, w.quote(n), fmt.Sprintf("if %s { %s } else { %s }",
				swaps, strings.Replace(w.quote(n), tok.String(), swapped[tok].String(), 1), w.quote(n)))
		}
	})
	return apply(w.text, w.edits)
}

// instance returns the type argument of a function that returns what an expression does. It
// is empty if the type has a name of its own, which the compiler then infers.
func (s *source) instance(e ast.Expr) string {
	if t, ok := types.Unalias(s.info.TypeOf(e)).(*types.Basic); ok && t.Info()&types.IsUntyped == 0 {
		return "[" + t.Name() + "]"
	}
	return ""
}

func (s *source) isText(e ast.Expr) bool {
	t, ok := s.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && t.Info()&types.IsString != 0
}

// mark is the text in a binary whose digits select a change. It stands in the binary and not
// in the environment, because tests start it again with environments of their own.
const mark = "MUTANT-000000"

// functions returns the file that the changed files need. Its functions apply their own
// operator, or the one that replaces it if their first argument is set.
func functions(pkg string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `package %s

import "strconv"

var mutantMark = %q

var mutant = func() int { n, _ := strconv.Atoi(mutantMark[len(mutantMark)-6:]); return n }()

type mutantInteger interface{ ~int|~int8|~int16|~int32|~int64|~uint|~uint8|~uint16|~uint32|~uint64|~uintptr }
type mutantNumber interface{ mutantInteger|~float32|~float64 }
type mutantOrdered interface{ mutantNumber|~string }

func mutantNot(on, v bool) bool { return v != on }
func mutantNegative[T mutantNumber](on bool, x T) T { if on { return x }; return -x }
func mutantOne[T mutantNumber](on bool, _ T) T { var zero T; if on { return zero-1 }; return 1 }
func mutantJoin[T ~string](drop bool, x, y T) T { if drop { return y }; return x + y }
`, pkg, mark)
	for _, tok := range []token.Token{token.LAND, token.LOR} {
		fmt.Fprintf(&b,
			"func mutant%d(on, x bool, y func() bool) bool { if on { return x %s y() }; return x %s y() }\n",
			tok, swapped[tok], tok)
	}
	for _, tok := range []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ} {
		fmt.Fprintf(&b,
			"func mutant%d[T mutantOrdered](on bool, x, y T) bool { if on { return x %s y }; return x %s y }\n",
			tok, swapped[tok], tok)
	}
	for tok := token.ADD; tok <= token.AND_NOT; tok++ {
		params := "T mutantInteger](on, drop bool, x, y T"
		switch tok {
		case token.ADD, token.SUB, token.MUL, token.QUO:
			params = "T mutantNumber](on, drop bool, x, y T"
		case token.SHL, token.SHR:
			params = "T, S mutantInteger](on, drop bool, x T, y S"
		}
		fmt.Fprintf(&b, "func mutant%d[%s) T { if drop { return T(y) }; if on { return x %s y }; return x %s y }\n",
			tok, params, swapped[tok], tok)
	}
	return b.Bytes()
}

// weave returns the files of the package in which each change can be selected by its number.
// It sets alone and dead of the changes for which that is impossible.
func (s *source) weave(changes []*change) map[string][]byte {
	for _, c := range changes {
		for _, d := range s.files[c.file].Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				c.alone = c.alone || d.Tok == token.CONST && s.within(d, c.Line)
			case *ast.FuncDecl: // operators between the types of a constraint
				c.dead = c.dead || d.Type.TypeParams != nil && s.within(d.Type.TypeParams, c.Line)
			}
		}
		w := s.weaver(c.file, []*change{c})
		w.eachOperator(func(n ast.Node, _ token.Pos, tok token.Token, _ []*change) {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				c.dead = c.dead || tok == token.ADD && s.isText(n)
			case *ast.AssignStmt:
				c.dead = c.dead || c.Type != removeSelf && s.isText(n.Lhs[0])
			case *ast.UnaryExpr:
				c.alone = c.alone || tok != token.SUB
			}
		})
	}
	var out map[string][]byte
	for {
		out = map[string][]byte{"mutants_functions.go": functions(s.packageName())}
		for name := range s.files {
			out[name] = s.all(name, changes)
		}
		errs := s.check(out, nil)
		if len(errs) == 0 {
			break
		}
		if !s.setAside(errs, changes) {
			panic(errs[0])
		}
	}
	for _, c := range changes {
		if c.alone && !c.dead {
			c.dead = len(s.check(map[string][]byte{c.file: s.single(c)}, nil)) > 0
		}
	}
	return out
}

// setAside leaves the changes on a line with an error to binaries of their own. If there are none,
// it leaves out the changes of loops in the same declaration, and then all changes in it.
func (s *source) setAside(errs []types.Error, changes []*change) bool {
	some := false
	for _, err := range errs {
		at := s.position(err)
		for _, fits := range []func(*change) bool{
			func(c *change) bool { return c.Line == at.Line },
			func(c *change) bool { return c.Type == invertLoop && s.sameDecl(c, at.Line) },
			func(c *change) bool { return s.sameDecl(c, at.Line) },
		} {
			found := false
			for _, c := range changes {
				if c.file == at.Filename && !c.alone && !c.dead && fits(c) {
					c.alone, found = true, true
				}
			}
			if some = some || found; found {
				break
			}
		}
	}
	return some
}

func (s *source) position(err types.Error) token.Position { return err.Fset.Position(err.Pos) }

func (s *source) within(n ast.Node, line int) bool {
	return s.set.Position(n.Pos()).Line <= line && line <= s.set.Position(n.End()).Line
}

func (s *source) sameDecl(c *change, line int) bool {
	return slices.ContainsFunc(s.files[c.file].Decls,
		func(d ast.Decl) bool { return s.within(d, line) && s.within(d, c.Line) })
}

func (s *source) packageName() string {
	for _, f := range s.files {
		return f.Name.Name
	}
	return ""
}

// buildTests builds the tests of the package with other files in place of, or besides, its own.
func (s *source) buildTests(binary string, other map[string][]byte) error {
	folder, err := os.MkdirTemp(filepath.Dir(binary), "")
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range other {
		overlay.Replace[filepath.Join(dir, name)] = filepath.Join(folder, name)
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), data, 0o600); err != nil {
		return err
	}
	out, err := exec.Command("go", "test", "-c", "-ldflags=-w",
		"-overlay="+filepath.Join(folder, "overlay.json"), "-o", binary, "./"+s.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the tests: %w\n%s", err, out)
	}
	return nil
}
