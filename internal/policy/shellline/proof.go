package shellline

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// proof reads a line a second time, byte by byte, in the part of the grammar on
// which all shells agree, and compares the parser's tree with it: every quote,
// expansion, substitution, here-document and word of the text has its node, and
// every such node has its place in the text. A line outside that part, or one on
// which the two readings differ, is not proven: a shell may read it in a third
// way.
type proof struct {
	src   string
	posix bool
	nodes map[int]node // by start; removed once the text has been seen to have them
	lits  []bool       // the bytes covered by literals of the tree
	// plain is above 0 inside expansions and backquotes, where shells differ on
	// quotes, backslashes and here-documents.
	plain int
	// bodies counts the here-documents whose bodies are still to come.
	bodies int
}

// node is what the tree has at a position.
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

// prove returns nil if the statements are all that a shell could see in the
// line, otherwise the reason why that is not certain.
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
		return errors.New("quotes or expansions that shells may read differently")
	}
	return nil
}

// register records the positions of the tree's nodes.
func (p *proof) register(n syntax.Node) error {
	switch n := n.(type) {
	case *syntax.Lit:
		for i := n.Pos().Offset(); i < min(n.End().Offset(), uint(len(p.lits))); i++ {
			p.lits[i] = true
		}
	case *syntax.SglQuoted:
		p.add(n, choose(n.Dollar, ansiQuoted, single))
	case *syntax.DblQuoted:
		p.add(n, choose(n.Dollar, localeQuoted, double))
	case *syntax.CmdSubst:
		p.add(n, choose(n.Backquotes, backquoted, substitution))
	case *syntax.ProcSubst:
		p.add(n, processSubst)
	case *syntax.ParamExp:
		if n.Dollar.IsValid() { // names in arithmetic have none
			p.add(n, parameter)
		}
	case *syntax.ArithmExp:
		if n.Bracket {
			return errors.New("$[ is arithmetic in some shells only")
		}
		p.add(n, arithmetic)
	case *syntax.ArithmCmd:
		p.add(n, arithmetic)
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

func (p *proof) add(n syntax.Node, k kind) {
	p.nodes[int(n.Pos().Offset())] = node{kind: k, end: int(n.End().Offset())}
}

func choose(dollar bool, yes, no kind) kind {
	if dollar {
		return yes
	}
	return no
}

// take removes the node of a kind at a position and returns its end.
func (p *proof) take(i int, k kind) (end int, ok bool) {
	n, ok := p.nodes[i]
	if !ok || n.kind != k {
		return 0, false
	}
	delete(p.nodes, i)
	return n.end, true
}

var errDiffers = errors.New("quotes or expansions that shells may read differently")

// code reads commands up to the byte that closes them, 0 for the end of the
// text, and returns that position.
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
		case c == '#' && p.startsWord(i):
			if closer != 0 {
				return 0, errors.New("a comment inside a substitution")
			}
			comment, _, _ := strings.Cut(p.src[i:], "\n")
			if i += len(comment); p.src[i-1] == '\\' {
				return 0, errors.New("a comment that ends in a backslash")
			}
		case c == '(' && p.nodes[i].kind == arithmetic, c == '(' && p.nodes[i].kind == loopHead:
			i, err = p.arithmetic(i, i+2, p.nodes[i].kind)
		case c == '(' && strings.HasPrefix(p.src[i:], "(("):
			err = errors.New("two opening parentheses that may be arithmetic")
		case c == '(':
			depth++
			i++
		case c == ')':
			depth-- // below 0 only after a pattern of case
			i++
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

// word reads one piece of a word, or a byte between words.
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
		option := end-i <= 2 && i > 0 && p.src[i-1] == '-' // of [[ or time
		if !option && !has(keywords, p.src[i:end]) {
			return 0, errDiffers
		}
		return end, nil
	}
	return i + 1, nil
}

const keywords = "if then elif else fi do done while until for in case esac select function time coproc declare typeset local export readonly nameref let"

// startsWord reports whether a word may begin at i.
func (p *proof) startsWord(i int) bool {
	return i == 0 || strings.IndexByte(" \t\n;&|()<>`", p.src[i-1]) >= 0
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
