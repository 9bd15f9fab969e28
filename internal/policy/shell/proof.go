package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// proof reads a line a second time, byte by byte, and compares it with the
// parser's tree. It knows only the part of the grammar on which all shells agree.
// Each quote, expansion, substitution, here-document and word in the text must
// have a node in the tree, and each such node must have a place in the text. If
// the line uses other syntax, or the two readings differ, the line is not proven,
// because some shell may read it differently.
type proof struct {
	src   string
	posix bool
	nodes map[int]node // by position; each is removed when its place in the text is reached
	lits  []bool       // the bytes that belong to literals of the tree
	// plain is greater than 0 inside expansions and backquotes, where shells
	// disagree about quotes, backslashes and here-documents.
	plain int
	// bodies is the number of here-documents whose bodies have not been reached.
	bodies int
}

// node is a node of the tree that begins at a given position.
type node struct {
	kind kind
	end  int
	hdoc *syntax.Redirect
}

type kind int

const (
	single kind = iota + 1
	ansiQuoted
	double
	localeQuoted
	substitution
	backquoted
	processSubst
	parameter
	arithmetic
	loopHead
	hereDoc
	hereWord
)

// prove returns nil if every shell must read the line as these statements, and
// otherwise the reason why that is not certain.
func prove(src string, stmts []*syntax.Stmt, posix bool) (err error) {
	p := &proof{src: src, posix: posix, nodes: map[int]node{}, lits: make([]bool, len(src))}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if err == nil {
				err = p.register(n)
			}
			return err == nil
		})
	}
	if err != nil {
		return err
	}
	if _, err = p.code(0, 0); err != nil {
		return err
	}
	if len(p.nodes) > 0 {
		return errDiffers
	}
	return nil
}

// register records the position of a node of the tree.
func (p *proof) register(n syntax.Node) error {
	switch n := n.(type) {
	case *syntax.Lit:
		for i := n.Pos().Offset(); i < min(n.End().Offset(), uint(len(p.lits))); i++ {
			p.lits[i] = true
		}
	case *syntax.SglQuoted:
		p.addNode(n, kindIf(n.Dollar, ansiQuoted, single))
	case *syntax.DblQuoted:
		p.addNode(n, kindIf(n.Dollar, localeQuoted, double))
	case *syntax.CmdSubst:
		p.addNode(n, kindIf(n.Backquotes, backquoted, substitution))
	case *syntax.ProcSubst:
		p.addNode(n, processSubst)
	case *syntax.ParamExp:
		if n.Dollar.IsValid() { // names in arithmetic have no dollar sign
			p.addNode(n, parameter)
		}
	case *syntax.ArithmExp:
		if n.Bracket {
			return errors.New("$[ is arithmetic in some shells only")
		}
		p.addNode(n, arithmetic)
	case *syntax.ArithmCmd:
		p.addNode(n, arithmetic)
	case *syntax.CStyleLoop:
		p.nodes[int(n.Lparen.Offset())] = node{kind: loopHead, end: int(n.Rparen.Offset()) + 2}
	case *syntax.Redirect:
		switch n.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.nodes[int(n.OpPos.Offset())] = node{kind: hereDoc, hdoc: n}
		case syntax.WordHdoc:
			p.nodes[int(n.OpPos.Offset())] = node{kind: hereWord}
		}
	case *syntax.ExtGlob:
		return errors.New("extended globs mean different things to different shells")
	case *syntax.LetClause:
		if strings.ContainsAny(p.src[n.Pos().Offset():n.End().Offset()], "'\"\\$`<>(){}[];|&\n") {
			return errors.New("let with more than names and numbers")
		}
	case *syntax.ArrayElem:
		if n.Index != nil {
			return errors.New("a subscript in a list of values")
		}
	}
	return nil
}

func (p *proof) addNode(n syntax.Node, k kind) {
	p.nodes[int(n.Pos().Offset())] = node{kind: k, end: int(n.End().Offset())}
}

func kindIf(dollar bool, yes, no kind) kind {
	if dollar {
		return yes
	}
	return no
}

// take removes the node at a position if it is of the given kind, and returns its
// end.
func (p *proof) take(i int, k kind) (end int, ok bool) {
	n, ok := p.nodes[i]
	if !ok || n.kind != k {
		return 0, false
	}
	delete(p.nodes, i)
	return n.end, true
}

var errDiffers = errors.New("quotes or expansions that shells may read differently")

// code reads commands up to the byte closer, or up to the end of the text if
// closer is 0, and returns the position at which they end.
func (p *proof) code(i int, closer byte) (int, error) {
	var bodies []*syntax.Redirect
	depth := 0
	for i < len(p.src) {
		c := p.src[i]
		var err error
		switch {
		case c == closer && depth == 0:
			if len(bodies) > 0 {
				return 0, errors.New("a here-document that ends with the construct around it")
			}
			return i, nil
		case c == '\n':
			if p.bodies != len(bodies) {
				return 0, errors.New("a newline between a here-document and its body")
			}
			i, err = p.hereBodies(i+1, bodies, closer)
			p.bodies, bodies = 0, nil
		case c == '<' && strings.HasPrefix(p.src[i:], "<<"):
			n := p.nodes[i]
			if i, err = p.hereStart(i); err == nil && n.kind == hereDoc {
				bodies = append(bodies, n.hdoc)
				p.bodies++
			}
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|()<>`", p.src[i-1]) >= 0): // a word can begin here
			if closer != 0 {
				return 0, errors.New("a comment inside a substitution")
			}
			comment, _, _ := strings.Cut(p.src[i:], "\n")
			if i += len(comment); p.src[i-1] == '\\' {
				return 0, errors.New("a comment that ends in a backslash")
			}
		case c == '(' && p.nodes[i].kind == arithmetic, c == '(' && p.nodes[i].kind == loopHead:
			i, err = p.arithmetic(i, i+2, p.nodes[i].kind)
		case strings.HasPrefix(p.src[i:], "(("):
			err = errors.New("two opening parentheses that may be arithmetic")
		case c == '(':
			depth++
			i++
		case c == ')':
			depth-- // negative only after a pattern in a case clause
			i++
		case closer == 0 && depth == 0 && p.bodies == 0 && p.isContinued(i):
			i += 2
		default:
			i, err = p.word(i)
		}
		if err != nil {
			return 0, err
		}
	}
	if closer != 0 || len(bodies) > 0 {
		return 0, errDiffers
	}
	return i, nil
}

// isContinued reports whether a backslash continues the line at i between two words,
// where every shell replaces it and the newline with nothing.
func (p *proof) isContinued(i int) bool {
	blank := func(i int) bool { return i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') }
	return i > 1 && strings.HasPrefix(p.src[i:], "\\\n") && !p.lits[i] && blank(i+2) && blank(i-1) && p.src[i-2] != '\\'
}

// word reads a piece of a word, or one byte between words.
func (p *proof) word(i int) (int, error) {
	c := p.src[i]
	switch {
	case c == '\'' || c == '"' || c == '$' || c == '`' || c == '\\':
		return p.special(i, false)
	case (c == '<' || c == '>') && strings.HasPrefix(p.src[i+1:], "("):
		return p.enclosed(i, i+2, processSubst, ')')
	case c == '[' && i > 0 && isNameByte(p.src[i-1]):
		end := strings.IndexByte(p.src[i:], ']')
		if end < 0 || strings.ContainsAny(p.src[i+1:i+end], " \t\n'\"\\$`<>(){};|&#[") {
			return 0, errors.New("a bracket after a name that may be a subscript")
		}
	case c == 0x85 || c == 0xa0:
		return 0, errors.New("a character outside quotes that is a blank in some locales; quote it")
	case c == '#' && !p.lits[i]:
		return 0, errDiffers
	case isNameByte(c) && !p.lits[i]:
		end := i
		for end < len(p.src) && isNameByte(p.src[end]) && !p.lits[end] {
			end++
		}
		option := end-i <= 2 && i > 0 && p.src[i-1] == '-' // an option, as of [[ and time
		if !option && !hasWord(keywords, p.src[i:end]) {
			return 0, errDiffers
		}
		return end, nil
	}
	return i + 1, nil
}

const keywords = "if then elif else fi do done while until for in case esac select function time coproc declare typeset local export readonly nameref let"
