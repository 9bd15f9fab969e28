package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// predeclared returns the names that scripts can use besides those of the language.
func (e *engine) predeclared(params starlark.Value) starlark.StringDict {
	known := starlark.StringDict{
		"tools":    &toolPath{engine: e},
		"call":     starlark.NewBuiltin("call", e.callByName),
		"parallel": starlark.NewBuiltin("parallel", e.parallel),
		"search":   starlark.NewBuiltin("search", e.asking(callSearch, "query")),
		"describe": starlark.NewBuiltin("describe", e.asking(callDescribe, "name")),
		"params":   params,
		"math":     math.Module,
		"json": &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
			"encode": starlark.NewBuiltin("json.encode", encodeBuiltin),
			"decode": starlark.NewBuiltin("json.decode", decodeBuiltin),
			"indent": starlark.NewBuiltin("json.indent", indentBuiltin),
		}},
	}
	for _, name := range []string{"list", "tuple", "set", "sorted", "reversed", "enumerate", "zip"} {
		known[name] = starlark.NewBuiltin(name, e.sized(starlark.Universe[name].(*starlark.Builtin)))
	}
	return known
}

// builtin is the implementation of a builtin function.
type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// sized returns a builtin that creates a list, but refuses one whose length alone exceeds the
// memory limit: Go would end the process before the place in the script is known.
func (e *engine) sized(b *starlark.Builtin) builtin {
	return func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		const item = 16 // bytes
		for _, arg := range args {
			if most := e.start.Limits.Memory; most > 0 && starlark.Len(arg) > int(most/item) {
				e.end(LimitMemory)
				return nil, errors.New(LimitMemory)
			}
		}
		return b.CallInternal(t, args, kwargs)
	}
}

// toolPath is the value tools or an attribute of it: a tool, or a server whose tools are its
// attributes.
type toolPath struct {
	engine *engine
	path   []string
}

func (p *toolPath) String() string        { return "tools" + p.words() }
func (p *toolPath) Type() string          { return "tool" }
func (p *toolPath) Freeze()               {}
func (p *toolPath) Truth() starlark.Bool  { return true }
func (p *toolPath) Hash() (uint32, error) { return starlark.String(p.words()).Hash() }
func (p *toolPath) Name() string          { return "tools" + p.words() }

func (p *toolPath) words() string {
	var b strings.Builder
	for _, w := range p.path {
		if IsIdentifier(w) {
			b.WriteString("." + w)
		} else {
			fmt.Fprintf(&b, "[%q]", w)
		}
	}
	return b.String()
}

func (p *toolPath) below(name string) (starlark.Value, error) {
	if len(p.path) == 2 {
		return nil, fmt.Errorf("%s is a tool and has no field %s", p, name)
	}
	return &toolPath{p.engine, append(p.path[:len(p.path):len(p.path)], name)}, nil
}

func (p *toolPath) Attr(name string) (starlark.Value, error) { return p.below(name) }

// AttrNames implements [starlark.HasAttrs]. The engine does not know which tools exist.
func (p *toolPath) AttrNames() []string { return nil }

func (p *toolPath) Get(key starlark.Value) (starlark.Value, bool, error) {
	name, ok := starlark.AsString(key)
	if !ok {
		return nil, false, fmt.Errorf("%s[…] takes the name of a tool, not %s", p, key.Type())
	}
	v, err := p.below(name)
	return v, err == nil, err
}

func (p *toolPath) CallInternal(t *starlark.Thread, args starlark.Tuple,
	kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(p.path) == 0 {
		return nil, errors.New("tools is not a tool; name one, such as tools.read_file(file_path=\"a.txt\")")
	}
	if len(args) > 0 {
		return nil, fmt.Errorf("%s takes its params by name, such as %s(name=value)", p, p)
	}
	params := starlark.NewDict(len(kwargs))
	for _, kv := range kwargs {
		if _, twice, _ := params.Get(kv[0]); twice {
			return nil, fmt.Errorf("%s has the param %s twice", p, kv[0])
		}
		if err := params.SetKey(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	raw, err := encodeJSON(params)
	if err != nil {
		return nil, fmt.Errorf("the params of %s: %w", p, err)
	}
	return p.engine.valueOf(t, callMessage{Kind: callTool, Path: p.path, Params: raw})
}

// callError is the error of a call that ends the script.
type callError struct {
	id      uint32
	message string
}

func (e *callError) Error() string { return e.message }

// value returns the value of a successful call: its structured content, or else its content.
func value(h replyHeader, body []byte) (starlark.Value, error) {
	if h.Structured > 0 {
		v, err := decodeJSON(body[:h.Structured])
		if err != nil {
			return nil, fmt.Errorf("the structured content of the result: %w", err)
		}
		return v, nil
	}
	if len(h.Parts) == 0 {
		return starlark.String(body[h.Structured:]), nil
	}
	var items []starlark.Value
	for _, p := range h.Parts {
		if p.Media == 0 {
			items = append(items, starlark.String(p.Text))
		} else {
			items = append(items, &media{p.Media, p.Kind, p.MIMEType, p.URI})
		}
	}
	if len(items) == 1 {
		return items[0], nil
	}
	return starlark.NewList(items), nil
}

// ask makes a call of the script and waits for the reply.
func (e *engine) ask(t *starlark.Thread, c callMessage) (replyHeader, message, uint32, error) {
	c.At = e.place(t)
	cancelled, _ := t.Local("cancelled").(chan struct{})
	c.Alone = cancelled == nil
	if most := e.start.Limits.Calls; most > 0 && e.calls.Add(1) > int64(most) {
		e.end(LimitCalls)
		return replyHeader{}, message{}, 0, errors.New(LimitCalls)
	}
	id := e.last.Add(1)
	replied := make(chan message, 1)
	e.mu.Lock()
	e.waiting[id] = replied
	only := len(e.waiting) == 1
	e.mu.Unlock()
	if err := e.link.send(msgCall, id, c); err != nil {
		return replyHeader{}, message{}, id, err
	}
	if only {
		e.poll(replied)
	}
	select {
	case m := <-replied:
		var h replyHeader
		err := json.Unmarshal(m.header, &h)
		return h, m, id, err
	case <-cancelled:
		_ = e.link.send(msgCancel, id, nil) // if it cannot be sent, the other process is gone
		return replyHeader{}, message{}, id, errCancelled
	case <-e.over:
		return replyHeader{}, message{}, id, errors.New(e.limit())
	}
}

var errCancelled = errors.New("cancelled, because another call of parallel failed")

// callByName implements call(name, params).
func (e *engine) callByName(t *starlark.Thread, b *starlark.Builtin,
	args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	params := new(starlark.Dict)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "params?", &params); err != nil {
		return nil, fmt.Errorf("%w; it is call(name, {param: value})", err)
	}
	raw, err := encodeJSON(params)
	if err != nil {
		return nil, fmt.Errorf("the params of %q: %w", name, err)
	}
	h, m, id, err := e.ask(t, callMessage{Kind: callTool, Path: []string{name}, Params: raw, Full: true})
	if err != nil {
		return nil, err
	}
	if h.Ends {
		return nil, &callError{id, h.Error}
	}
	out := &outcome{names: []string{"ok", "value", "text", "category", "error"}, values: map[string]starlark.Value{
		"ok": starlark.Bool(h.Error == ""), "value": starlark.None, "category": starlark.None, "error": starlark.None,
		"text": starlark.String(m.body[h.Structured:]),
	}}
	if h.Error != "" {
		out.values["category"], out.values["error"] = starlark.String(h.Category), starlark.String(h.Error)
		return out, nil
	}
	out.values["value"], err = value(h, m.body)
	return out, err
}

// asking implements search(query) and describe(name).
func (e *engine) asking(kind, param string) builtin {
	return func(t *starlark.Thread, b *starlark.Builtin,
		args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var text string
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, param, &text); err != nil {
			return nil, err
		}
		return e.valueOf(t, callMessage{Kind: kind, Path: []string{text}})
	}
}

// valueOf asks the parent process and returns its answer. A failed call is an error that ends the
// script.
func (e *engine) valueOf(t *starlark.Thread, c callMessage) (starlark.Value, error) {
	h, m, id, err := e.ask(t, c)
	if err != nil {
		return nil, err
	}
	if h.Error != "" {
		return nil, &callError{id, h.Error}
	}
	return value(h, m.body)
}

// parallel implements parallel(f, list, limit=8).
func (e *engine) parallel(t *starlark.Thread, b *starlark.Builtin,
	args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var f starlark.Callable
	var list starlark.Iterable
	limit := 8
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "f", &f, "list", &list, "limit?", &limit); err != nil {
		return nil, err
	}
	if limit < 1 || limit > 64 {
		return nil, fmt.Errorf("parallel: limit must be 1 to 64, not %d", limit)
	}
	var items []starlark.Value
	iter := list.Iterate()
	var item starlark.Value
	for iter.Next(&item) {
		item.Freeze()
		items = append(items, item)
	}
	iter.Done()
	e.freeze(f)
	r := &parallelRun{
		engine:  e,
		at:      e.place(t),
		results: make([]starlark.Value, len(items)),
		failed:  len(items),
		running: map[int]func(){},
	}
	slots := make(chan struct{}, limit)
	outer, _ := t.Local("cancelled").(chan struct{})
	var all sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		select {
		case <-outer:
			r.cancel()
		case <-e.over:
			r.cancel()
		default:
		}
		if !r.wants(i) {
			<-slots
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			r.one(i, f, item)
		})
	}
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-outer:
		r.cancel()
		<-finished
	}
	if r.err != nil {
		return nil, r.err
	}
	return starlark.NewList(r.results), nil
}

type parallelRun struct {
	engine  *engine
	at      string
	results []starlark.Value

	mu      sync.Mutex
	failed  int // index of the first item that failed; the number of items if none failed
	err     error
	running map[int]func() // cancel the runs
}

// wants reports whether the item with an index is still to run.
func (r *parallelRun) wants(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return i < r.failed
}

func (r *parallelRun) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(0, errCancelled)
}

// fail records a failure and cancels the items after it in the list.
func (r *parallelRun) fail(i int, err error) {
	if i >= r.failed && r.err != nil {
		return
	}
	r.failed, r.err = i, err
	for j, cancel := range r.running {
		if j >= i {
			cancel()
		}
	}
}

func (r *parallelRun) one(i int, f starlark.Callable, item starlark.Value) {
	cancelled := make(chan struct{})
	t, done := r.engine.thread("parallel", r.at, cancelled)
	defer done()
	var once sync.Once
	cancel := func() { once.Do(func() { t.Cancel("another call of parallel failed"); close(cancelled) }) }
	r.mu.Lock()
	if i >= r.failed {
		cancel()
	}
	r.running[i] = cancel
	r.mu.Unlock()
	v, err := func() (v starlark.Value, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = r.engine.panicked(p)
			}
		}()
		return starlark.Call(t, f, starlark.Tuple{item}, nil)
	}()
	if _, own := f.(*starlark.Function); err != nil && !own { // no place of the script is on the stack
		err = &placedError{r.at, err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, i)
	r.results[i] = v
	if err != nil && i < r.failed {
		r.fail(i, err)
	}
}

// freeze freezes a function and what it uses, so that it can run in several threads.
func (e *engine) freeze(f starlark.Value) {
	frozen := map[*starlark.Function]bool{}
	used := globalsOf(e.file)
	var freeze func(v starlark.Value)
	freeze = func(v starlark.Value) {
		v.Freeze()
		fn, ok := v.(*starlark.Function)
		if !ok || frozen[fn] {
			return
		}
		frozen[fn] = true
		globals := fn.Globals()
		for _, name := range used[fn.Position()] {
			if g := globals[name]; g != nil {
				freeze(g)
				e.freezeInside(g, freeze)
			}
		}
		for i := range fn.NumParams() {
			if v := fn.ParamDefault(i); v != nil {
				e.freezeInside(v, freeze)
			}
		}
		for i := range fn.NumFreeVars() {
			_, v := fn.FreeVar(i)
			freeze(v)
			e.freezeInside(v, freeze)
		}
	}
	freeze(f)
}

// freezeInside freezes what the functions in a container use.
func (e *engine) freezeInside(v starlark.Value, freeze func(starlark.Value)) {
	seen := map[any]bool{}
	var inside func(v starlark.Value)
	inside = func(v starlark.Value) {
		switch v := v.(type) {
		case *starlark.Function:
			freeze(v)
		case *starlark.List, *starlark.Dict:
			if seen[v] {
				return
			}
			seen[v] = true
		case starlark.Tuple:
		default:
			return
		}
		if m, ok := v.(starlark.IterableMapping); ok {
			for _, kv := range m.Items() {
				inside(kv[1])
			}
		} else if list, ok := v.(starlark.Iterable); ok {
			iter := list.Iterate()
			defer iter.Done()
			var x starlark.Value
			for iter.Next(&x) {
				inside(x)
			}
		}
	}
	inside(v)
}

func encodeBuiltin(_ *starlark.Thread, b *starlark.Builtin,
	args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	raw, err := encodeJSON(x)
	if err != nil {
		return nil, fmt.Errorf("json.encode: %w", err)
	}
	return starlark.String(raw), nil
}

func decodeBuiltin(_ *starlark.Thread, b *starlark.Builtin,
	args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text string
	var otherwise starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &text, "default?", &otherwise); err != nil {
		return nil, err
	}
	var v starlark.Value
	wrong := jsonx.Check([]byte(text), jsonx.Options{})
	if wrong == nil {
		var err error
		if v, err = decodeJSON([]byte(text)); err == nil {
			return v, nil
		} else if otherwise == nil {
			return nil, fmt.Errorf("json.decode: %w", err)
		}
	}
	if otherwise != nil {
		return otherwise, nil
	}
	return nil, fmt.Errorf("json.decode: %w", wrong)
}

func indentBuiltin(_ *starlark.Thread, b *starlark.Builtin,
	args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text, prefix string
	indent := "\t"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &text,
		"prefix?", &prefix, "indent?", &indent); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, indent); err != nil {
		return nil, fmt.Errorf("json.indent: %w", err)
	}
	return starlark.String(out.String()), nil
}
