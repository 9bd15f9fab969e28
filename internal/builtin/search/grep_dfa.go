package search

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
)

const (
	maxDFAStates  = 512
	maxDFAProgram = 2000 // instructions
	maxDFAFlushes = 20
)

// lineDFA finds lines that match an expression with one table look-up per byte,
// where package regexp follows all threads of its program: it is about twenty
// times faster, which makes grep eight times as fast for a pattern without a
// literal. It builds states as the text needs them. Lines that are not ASCII
// are left to package regexp, so that the answers are the same. It is not for
// concurrent use.
type lineDFA struct {
	prog    *syntax.Prog
	regexp  *regexp.Regexp
	states  map[string]*dfaState
	start   *dfaState // at the start of a line
	matched *dfaState // after a match; it has no transitions
	flushes int       // how often there were too many states
	seen    []bool    // instructions seen, while one set is followed
	stack   []uint32
}

// dfaState is a set of positions in the program from which the next byte
// continues, and the kind of byte before.
type dfaState struct {
	next   [256]*dfaState // nil: not built yet, or not a plain byte
	places []uint32
	before rune // -1 at the start of a line, 'a' for a letter, ' ' for others
	atEnd  bool // a line that ends here matches
}

// newLineDFA returns nil if the expression is too large.
func newLineDFA(e *lineExpr) *lineDFA {
	if len(e.prog.Inst) > maxDFAProgram {
		return nil
	}
	d := &lineDFA{prog: e.prog, regexp: e.regexp, seen: make([]bool, len(e.prog.Inst)), matched: &dfaState{}}
	d.flush()
	return d
}

func (d *lineDFA) flush() {
	d.states = map[string]*dfaState{}
	d.start = d.state([]uint32{uint32(d.prog.Start)}, -1)
}

// find returns a position in the first matching line at or after the line start
// from, or nowhere.
func (d *lineDFA) find(text []byte, from int) int {
	st, i, line := d.start, from, from
	for {
		for i < len(text) {
			next := st.next[text[i]]
			if next == nil {
				break
			}
			st = next
			i++
		}
		switch {
		case st == d.matched:
			return i - 1
		case i == len(text):
			if line < i && st.atEnd {
				return i - 1
			}
			return nowhere
		case endsLine(text[i:]):
			if st.atEnd {
				return i
			}
			i = lineEnd(text, i) + 1
			st, line = d.start, i
		case text[i] < 0x80:
			st = d.step(st, text[i])
			i++
		default:
			end := lineEnd(text, i)
			if d.regexp.Match(trimCR(text[line:end])) {
				return i
			}
			i = end + 1
			st, line = d.start, i
		}
		if i > len(text) {
			return nowhere // the last line had no line break
		}
	}
}

// lineEnd returns where the line around i ends, without its line break.
func lineEnd(text []byte, i int) int {
	if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(text)
}

// endsLine reports whether the text continues with a line break, or ends.
func endsLine(rest []byte) bool {
	return rest[0] == '\n' || rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n')
}

// step makes the transition from a state by an ASCII byte.
func (d *lineDFA) step(from *dfaState, c byte) *dfaState {
	to := d.advance(from, rune(c))
	if c != '\r' { // which may end a line
		from.next[c] = to
	}
	return to
}

// advance returns the state after a character.
func (d *lineDFA) advance(from *dfaState, c rune) *dfaState {
	places := []uint32{uint32(d.prog.Start)} // a match may begin anywhere
	matched := d.follow(from, c, func(in *syntax.Inst) {
		if in.MatchRune(c) {
			places = append(places, in.Out)
		}
	})
	if matched {
		return d.matched
	}
	before := ' '
	if syntax.IsWordChar(c) {
		before = 'a'
	}
	slices.Sort(places)
	return d.state(slices.Compact(places), before)
}

// follow goes from the positions of a state through all instructions that
// consume no character; next is the character ahead, -1 at the end of the line.
// It calls take for those that consume one, and reports whether it reached a
// match.
func (d *lineDFA) follow(st *dfaState, next rune, take func(*syntax.Inst)) bool {
	flags := syntax.EmptyOpContext(st.before, next)
	clear(d.seen)
	d.stack = append(d.stack[:0], st.places...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] {
			continue
		}
		d.seen[pc] = true
		switch in := &d.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				d.stack = append(d.stack, in.Out)
			}
		case syntax.InstFail:
		default:
			take(in)
		}
	}
	return false
}

// state returns the one state for these positions. If there are too many
// states, all are forgotten; old ones live on as long as a search refers to
// them.
func (d *lineDFA) state(places []uint32, before rune) *dfaState {
	key := make([]byte, 0, 4*len(places)+1)
	for _, p := range places {
		key = binary.LittleEndian.AppendUint32(key, p)
	}
	key = append(key, byte(before))
	if st := d.states[string(key)]; st != nil {
		return st
	}
	if len(d.states) >= maxDFAStates {
		d.flushes++
		d.flush()
	}
	st := &dfaState{places: places, before: before}
	st.atEnd = d.follow(st, -1, func(*syntax.Inst) {})
	d.states[string(key)] = st
	return st
}

// thrashing reports whether the expression needs so many states that building
// them costs more than they save.
func (d *lineDFA) thrashing() bool { return d.flushes > maxDFAFlushes }
