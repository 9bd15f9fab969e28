package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/toolreg/toolreg/internal/memory"
	"github.com/toolreg/toolreg/internal/text"
)

// grace is how long the interpreter may take to notice that a limit was reached. One
// operation may take longer; then the process ends without it.
const grace = 5 * time.Millisecond

// Execute runs the script that [Run] sends to stdin. It is the main function of the process that
// Run starts. That process must do nothing else, because the memory limit applies to all of its
// memory.
func Execute(ctx context.Context) error {
	l := newLink(os.Stdin, os.Stdout, 1<<31-1)
	m, err := l.receive()
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	e := &engine{link: l, over: make(chan struct{}),
		waiting: map[uint32]chan message{}, threads: map[*starlark.Thread]bool{}}
	if err := json.Unmarshal(m.header, &e.start); err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	if e.start.Shared {
		memory, err := openRings()
		if err != nil {
			return err
		}
		l.share(&memory[0], &memory[1], func() error { time.Sleep(pause); return nil })
	}
	if n := e.start.Limits.Memory; n > 0 {
		// If the other process is gone, there is nobody to report to.
		report := func() { _ = e.link.send(msgAt, 0, e.where()) }
		defer watchOwn(ctx, n, report, func() { e.end(LimitMemory) })()
	}
	debug.SetMaxStack(256 << 20)
	go e.receive()
	done := make(chan endMessage, 1)
	go func() { done <- e.all(m.body) }()
	var end endMessage
	select {
	case end = <-done:
	case <-e.over:
		select {
		case end = <-done:
		case <-time.After(grace):
			end = endMessage{Failure: &Failure{Kind: KindLimit, Limit: e.limit(), At: e.where()}}
		}
	}
	return l.send(msgEnd, 0, end)
}

func (e *engine) all(source []byte) (end endMessage) {
	defer func() {
		if p := recover(); p != nil {
			err := e.panicked(p)
			end = endMessage{Failure: e.failure(err)}
		}
	}()
	program, failure := e.compile(source)
	if failure != nil {
		return endMessage{Failure: failure}
	}
	if e.start.Check {
		return endMessage{Calls: mentions(e.file)}
	}
	t, done := e.thread("main", e.start.Name+":1:1", nil)
	defer done()
	v, at, err := e.run(t, program)
	if err == nil {
		end, err = e.result(v)
		if err != nil {
			err = &placedError{at, err}
		}
	}
	if err != nil {
		return endMessage{Failure: e.failure(err)}
	}
	return end
}

// compile parses the script and resolves its names.
func (e *engine) compile(source []byte) (*starlark.Program, *Failure) {
	source = text.WithoutMark(source)
	if before, _, found := bytes.Cut(source, []byte{0}); found { // Starlark takes it for the end of the file
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		at := fmt.Sprintf("%s:%d:%d", e.start.Name, bytes.Count(before, []byte{'\n'})+1, utf8.RuneCount(line)+1)
		return nil, &Failure{Kind: KindSyntax, At: at, Message: "a script is text and cannot have a zero byte"}
	}
	known := e.predeclared(starlark.None)
	var err error
	if e.file, err = (&syntax.FileOptions{Set: true, TopLevelControl: true, GlobalReassign: true}).
		Parse(e.start.Name, source, 0); err != nil {
		return nil, syntaxFailure(source, err)
	}
	for _, stmt := range e.file.Stmts {
		if load, ok := stmt.(*syntax.LoadStmt); ok {
			return nil, &Failure{Kind: KindSyntax, At: load.Load.String(), Message: noModules}
		}
	}
	program, err := starlark.FileProgram(e.file, known.Has)
	if err != nil {
		return nil, syntaxFailure(source, err)
	}
	return program, nil
}

// run runs the script and returns its result with the position that it comes from.
func (e *engine) run(t *starlark.Thread, program *starlark.Program) (starlark.Value, string, error) {
	params, err := decodeJSON(e.start.Params)
	if err != nil {
		return nil, "", fmt.Errorf("the params: %w", err)
	}
	params.Freeze() // functions that run in parallel can read them
	globals, err := program.Init(t, e.predeclared(params))
	if err != nil {
		return nil, "", err
	}
	if main, ok := globals["main"].(*starlark.Function); ok {
		args := starlark.Tuple{params}
		if main.NumParams() == 0 && !main.HasVarargs() {
			args = nil
		}
		v, err := starlark.Call(t, main, args, nil)
		return v, main.Position().String(), err
	}
	return globals["result"], assigned(e.file, "result"), nil
}

// assigned returns the place of the last assignment to a global variable.
func assigned(f *syntax.File, name string) string {
	at := syntax.Start(f).String()
	syntax.Walk(f, func(n syntax.Node) bool {
		if a, ok := n.(*syntax.AssignStmt); ok {
			if id, ok := a.LHS.(*syntax.Ident); ok && id.Name == name {
				at = id.NamePos.String()
			}
		}
		_, inside := n.(*syntax.DefStmt)
		return !inside
	})
	return at
}

// result converts the result of the script. Media become separate parts.
func (e *engine) result(v starlark.Value) (endMessage, error) {
	if v == nil {
		return endMessage{}, nil
	}
	parts := []starlark.Value{v}
	if list, ok := v.(*starlark.List); ok && onlyContent(list) {
		parts = nil
		for item := range list.Elements() {
			parts = append(parts, item)
		}
	}
	var end endMessage
	for _, p := range parts {
		switch p := p.(type) {
		case starlark.String:
			if most := e.start.Limits.Result; most > 0 && int64(len(p)) > most {
				return end, errTooLong
			}
			end.Parts = append(end.Parts, Part{Text: validText(string(p))})
		case *media:
			end.Parts = append(end.Parts, Part{Media: p.index})
		default:
			return e.document(p)
		}
	}
	return end, nil
}

// onlyContent reports whether a list contains media and, apart from these, only text.
func onlyContent(list *starlark.List) bool {
	found := false
	for item := range list.Elements() {
		switch item.(type) {
		case *media:
			found = true
		case starlark.String:
		default:
			return false
		}
	}
	return found
}

// document converts a result that is not text to JSON, followed by the media in it.
func (e *engine) document(v starlark.Value) (endMessage, error) {
	var after []Part
	enc := encoder{most: int(e.start.Limits.Result), media: func(m *media) (any, error) {
		after = append(after, Part{Media: m.index})
		return map[string]any{"type": m.kind, "content": len(after) + 1}, nil
	}}
	if err := enc.value(v); err != nil {
		return endMessage{}, err
	}
	if enc.most > 0 && len(enc.out) > enc.most {
		return endMessage{}, errTooLong
	}
	return endMessage{Parts: append([]Part{{Text: string(enc.out)}}, after...), Object: enc.out[0] == '{'}, nil
}

// failure describes why a script ended.
func (e *engine) failure(err error) *Failure {
	f := &Failure{Kind: KindScript, Message: err.Error()}
	if evaluated, ok := errors.AsType[*starlark.EvalError](err); ok {
		f.Message, f.At = evaluated.Msg, e.innermost(evaluated.CallStack)
	}
	f.Message = answerRun(f.Message)
	if placed, ok := errors.AsType[*placedError](err); ok {
		f.At = placed.at
	}
	if f.At == "" {
		f.At = e.where()
	}
	if failed, ok := errors.AsType[*callError](err); ok {
		f.Kind, f.Call, f.Message = KindCall, failed.id, failed.message
	}
	switch {
	case e.limit() != "":
		f.Kind, f.Limit, f.Message, f.Call = KindLimit, e.limit(), "", 0
	case errors.Is(err, errTooLong):
		f.Kind, f.Limit, f.Message = KindLimit, LimitResult, ""
	case strings.HasPrefix(f.Message, "excessive repeat"), strings.HasPrefix(f.Message, "repeat count"):
		f.Kind, f.Limit, f.Message = KindLimit, LimitMemory, ""
	}
	return f
}

// syntaxFailure describes why a script cannot be run.
func syntaxFailure(source []byte, err error) *Failure {
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		err = syntax.Error(list[0])
	}
	wrong, ok := errors.AsType[syntax.Error](err)
	if !ok {
		return &Failure{Kind: KindSyntax, Message: err.Error()}
	}
	before, line := around(string(source), wrong.Pos)
	if quotes := before[max(len(before)-3, 0):]; quotes == `"""` || quotes == "'''" { // reported where it ends
		before = before[:max(strings.LastIndex(before[:len(before)-3], quotes), 0)]
		wrong.Pos.Line = int32(strings.Count(before, "\n") + 1)
		wrong.Pos.Col = int32(len(before) - strings.LastIndexByte(before, '\n'))
		_, line = around(string(source), wrong.Pos)
	}
	word := strings.TrimLeft(line[max(min(int(wrong.Pos.Col)-1, len(line)), 0):], " ")
	return &Failure{Kind: KindSyntax, At: wrong.Pos.String(), Message: answerSyntax(line, word, wrong.Msg)}
}

func around(source string, pos syntax.Position) (before, line string) {
	lines := strings.SplitAfter(source, "\n")
	if int(pos.Line) > len(lines) || pos.Line < 1 {
		return source, ""
	}
	line = lines[pos.Line-1]
	before = strings.Join(lines[:pos.Line-1], "") + line[:max(min(int(pos.Col)-1, len(line)), 0)]
	return before, strings.TrimSuffix(line, "\n")
}

// The memory of the engine is watched twice: by the engine, which knows how much of it is garbage,
// and by the process that started it, because the garbage collector stops every goroutine of the
// engine for as long as one operation of the script takes. Therefore the engine collects garbage
// only when its memory has grown, and first reports the position that the script has reached.
const (
	looks = 2 * time.Millisecond
	// slack is how far the engine may exceed its limit before it is killed.
	slack = 256 << 20
)

// watchOwn calls exceeded when the memory of this process, without garbage, has grown by more
// than the limit. It calls collecting before it collects garbage. The returned function ends
// the watch.
func watchOwn(ctx context.Context, limit uint64, collecting, exceeded func()) (stop func()) {
	used, closeFile := resident("self")
	begin := used()
	if begin == 0 {
		closeFile()
		debug.SetGCPercent(100)
		ctx, stop := memory.Limit(ctx, limit)
		context.AfterFunc(ctx, exceeded)
		return stop
	}
	ctx, stop = context.WithCancel(ctx)
	grown := func() uint64 { return max(used(), begin) - begin }
	go func() {
		defer closeFile()
		debug.SetPanicOnFault(true) // collecting looks at a stack that may change
		next := limit / 2
		for ctx.Err() == nil {
			if grown() > next {
				collecting()
				for range 2 { // the first one misses what became garbage meanwhile
					if debug.FreeOSMemory(); grown() <= next {
						break
					}
				}
				live := grown()
				if live > limit {
					exceeded()
					return
				}
				next = live + max((limit-live)/2, 1<<20)
			}
			time.Sleep(looks)
		}
	}()
	return stop
}

// watchOther calls exceeded when a process uses far more memory than its limit.
func watchOther(ctx context.Context, pid string, limit uint64, exceeded func()) {
	used, closeFile := resident(pid)
	go func() {
		defer closeFile()
		for ctx.Err() == nil {
			if used() > limit+slack {
				exceeded()
				return
			}
			time.Sleep(2 * looks)
		}
	}()
}
