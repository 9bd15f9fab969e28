package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/script"
)

// TestMain lets the test binary act as the engine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "engine" {
		code := 0
		if err := script.Execute(context.Background()); err != nil {
			code = 1
		}
		syscall.Exit(code) // os.Exit takes a second with the race detector
	}
	os.Exit(m.Run())
}

// host is a host with a few tools.
type host struct {
	mu    sync.Mutex
	calls []string
	lines []string
}

func (h *host) Call(ctx context.Context, c script.Call) script.Reply {
	name := strings.Join(c.Path, "__")
	h.mu.Lock()
	h.calls = append(h.calls, name+string(c.Params))
	h.mu.Unlock()
	switch name {
	case "echo":
		return script.Reply{Structured: c.Params, Text: string(c.Params)}
	case "text", "a.b", "hub__text", "no identifier":
		return script.Reply{Text: "text of " + name}
	case "picture":
		return script.Reply{Text: "see", Parts: []script.Part{{Text: "see"}, {Media: 1, Kind: "image", MIMEType: "image/png"}}}
	case "odd":
		return script.Reply{Structured: json.RawMessage(`{"big":123456789012345678901234567890,"f":1.0,"e":1e3,"z":null,"b":[true,false],"u":"é\ud800\u0000","a":{}}`)}
	case "wait":
		<-ctx.Done()
		return script.Reply{Err: "cancelled", Category: "cancellation"}
	}
	return script.Reply{Err: "there is no tool " + name, Category: "not_found"}
}

func (h *host) Search(_ context.Context, query string) script.Reply {
	return script.Reply{Structured: json.RawMessage(`[{"name":"echo","description":` + fmt.Sprintf("%q", query) + `}]`)}
}

func (h *host) Describe(_ context.Context, name string) script.Reply {
	if name != "echo" {
		return script.Reply{Err: "there is no tool " + name, Category: "not_found"}
	}
	return script.Reply{Structured: json.RawMessage(`{"name":"echo"}`)}
}

func (h *host) Print(line string) { h.lines = append(h.lines, line) }

// limits are small enough that no test takes long.
func limits() script.Limits {
	return script.Limits{Steps: 3_000_000, Calls: 20, Memory: 64 << 20, Output: 1000, Result: 1 << 20, Timeout: 2 * time.Minute}
}

func newScript(t testing.TB, h script.Host, text string) script.Script {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return script.Script{Name: "x.star", Text: []byte(text), Params: json.RawMessage(`{"n":3,"s":"t"}`), Limits: limits(), Engine: []string{self, "engine"}, Host: h}
}

// outcome runs a script and returns its result or failure in a line.
func outcome(t testing.TB, s script.Script) string {
	t.Helper()
	r, err := script.Run(t.Context(), s)
	if f, ok := errors.AsType[*script.Failure](err); ok {
		return f.Kind + " " + f.Error()
	}
	if err != nil {
		return "error " + err.Error()
	}
	var parts []string
	for _, p := range r.Parts {
		if p.Media > 0 {
			parts = append(parts, fmt.Sprint("media ", p.Media))
		} else {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, " | ")
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"the variable result", `result = 1 + 2`, `3`},
		{"main", "def main(params):\n  return params.get('n')", `3`},
		{"main without params", "def main():\n  return 'x'", `x`},
		{"neither", `x = 1`, ``},
		{"text stays as it is", `result = "a\n\"b\""`, "a\n\"b\""},
		{"objects keep their order", `result = {"z": 1, "a": [None, True, 1.0, 1.5]}`, `{"z":1,"a":[null,true,1.0,1.5]}`},
		{"tuples and sets", `result = [(1, 2), set([3]), range(2)]`, `[[1,2],[3],[0,1]]`},
		{"values of JSON", `result = tools.odd()`, `{"big":123456789012345678901234567890,"f":1.0,"e":1000.0,"z":null,"b":[true,false],"u":"é` + "\ufffd" + `\u0000","a":{}}`},
		{"large integers", `result = tools.odd()["big"] + 1`, `123456789012345678901234567891`},
		{"calls", `result = tools.echo(x = params["n"], y = {"k": [1]})`, `{"x":3,"y":{"k":[1]}}`},
		{"names", `result = [tools.text(), tools["a.b"](), tools.hub.text(), tools["hub"]["text"](), tools["no identifier"]()]`, `["text of text","text of a.b","text of hub__text","text of hub__text","text of no identifier"]`},
		{"params that are not identifiers", `result = tools.echo(**{"a-b": 1})`, `{"a-b":1}`},
		{"json keeps the order", `result = json.encode(json.decode('{"z":1,"a":2}'))`, `{"z":1,"a":2}`},
		{"json.decode with a default", `result = json.decode("{", 7)`, `7`},
		{"json.decode of a wrong text", `result = json.decode("{")`, `script x.star:1:21: json.decode: `},
		{"media", `result = tools.picture()`, `see | media 1`},
		{"one medium", `result = tools.picture()[1]`, `media 1`},
		{"media in an object", `result = {"p": tools.picture()[1]}`, `{"p":{"content":2,"type":"image"}} | media 1`},
		{"media as a param", `tools.echo(x = tools.picture())`, `script x.star:1:11: the params of tools.echo: the value at x[1] is image, which only the result of the script can hold`},
		{"call", `r = call("echo", {"x": 1}); result = [r.ok, r["ok"], r.value, r.text, r.error]`, `[true,true,{"x":1},"{\"x\":1}",null]`},
		{"call of an unknown tool", `r = call("nope"); result = [r.ok, r.category, r.error]`, `[false,"not_found","there is no tool nope"]`},
		{"a call that fails", "x = 1\nresult = tools.nope(a = 1)\n", `call x.star:2:20: there is no tool nope`},
		{"search and describe", `result = [search("find it")[0]["description"], describe("echo")["name"]]`, `["find it","echo"]`},
		{"describe fails", `describe("nope")`, `call x.star:1:9: there is no tool nope`},
		{"parallel", `result = parallel(lambda x: tools.echo(x = x)["x"], range(5), limit = 2)`, `[0,1,2,3,4]`},
		{"parallel freezes what the function closes over", "a = []\nb = []\ndef f(x):\n  a.append(x)\nparallel(f, [1])", `script x.star:4:11: append: cannot append to frozen list`},
		{"parallel freezes nothing else", "a = []\nb = []\ndef f(x):\n  return a\nparallel(f, [1])\nb.append(1)\nresult = b", `[1]`},
		{"parallel freezes what a called function uses", "a = []\ndef g(x):\n  a.append(x)\nd = {'g': g}\ndef f(x):\n  d['g'](x)\nparallel(f, [1])", `script x.star:3:11: append: cannot append to frozen list`},
		{"the first failure of parallel", "def f(x):\n  if x == 0: tools.wait()\n  if x > 0: tools.nope()\nparallel(f, [1, 0, 2])", `call x.star:3:23: there is no tool nope`},
		{"a param twice", `tools.echo(a = 1, **{"a": 2})`, `script x.star:1:11: tools.echo has the param "a" twice`},
		{"a zero byte", "x = 1\ny = '\x00'", `syntax x.star:2:6: a script is text and cannot have a zero byte`},
		{"a builtin in parallel", "x = 1\nparallel(len, [1])", `script x.star:2:9: len: value of type int has no len`},
		{"positional params", `tools.echo(1)`, `script x.star:1:11: tools.echo takes its params by name, such as tools.echo(name=value)`},
		{"no value of JSON", "def main(params):\n  return {'a': [1, main]}", `script x.star:1:1: the value at a[1] has type function, which JSON does not have`},
		{"NaN", "x = 1\nresult = [float('nan')]", `script x.star:2:1: the value at [0] is nan, which JSON does not have`},
		{"bytes", `result = b"x"`, `script x.star:1:1: the value has type bytes, which JSON does not have; str(x) is its text`},
		{"a cycle", "a = []\na.append(a)\nresult = a", `script x.star:3:1: the value at [0] contains itself`},
		{"a deep value", "a = []\nfor i in range(101): a = [a]\nresult = a", `script x.star:3:1: the value at `},
		{"keys that are no strings", `result = {1: 2}`, `script x.star:1:1: the value has a key of type int; the keys of objects are strings`},
		{"fail", "def main(params):\n  fail('no', 1)", `script x.star:2:7: fail: no 1`},
		{"while", "while True:\n  pass", `syntax x.star:1:1: Starlark has no while loops here; use for x in range(n)`},
		{"params of main", "def main(a, b): return a", `function main missing 1 argument (b); it gets all params in one argument, as in def main(params)`},
		{"recursion", "def f(x): return f(x)\nf(1)", `script x.star:1:18: function f called recursively; Starlark has no recursion; use a loop over range(n) and a list of what is left`},
		{"increment", "x = 1\nx++\ny = x", `syntax x.star:2:4: Starlark has no ++ and --; use x += 1`},
		{"match", "match 1:\n  case 1: pass", `syntax x.star:1:8: Starlark has no match; use if and elif`},
		{"main", "x = __name__", `syntax x.star:1:5: undefined: __name__; a script has no main; write the lines at the top`},
		{"enumerate", "x = enumerate([1], start=1)", `script x.star:1:14: enumerate: unexpected keyword arguments; use enumerate(x, 1)`},
		{"print", "print('a', end='')", `script x.star:1:6: print: unexpected keyword argument "end"; print takes only sep; join the texts with +`},
		{"power", `x = 2 ** 3`, `syntax x.star:1:9: Starlark has no operator **; multiply, or use math.pow(x, y)`},
		{"f-strings", `x = f"a{b}"`, `syntax x.star:1:12: Starlark has no f-strings; use "…%s…" % x or "…{}…".format(x)`},
		{"try", "try:\n  x = 1\nexcept:\n  pass", `syntax x.star:1:1: Starlark has no exceptions; call(name, params) returns an error instead of ending the script, and fail(text) ends it`},
		{"is", "x = None\nif x is None:\n  pass", `syntax x.star:2:8: Starlark has no operator is; use == or !=, as in x == None`},
		{"is not in a condition", `x = 1 if None is not None else 2`, `Starlark has no operator is`},
		{"json.dumps", `x = json.dumps({})`, `use json.encode(value)`},
		{"json.loads", `x = json.loads("{}")`, `use json.decode(text)`},
		{"null", `x = null`, `syntax x.star:1:5: undefined: null; use None`},
		{"true", `x = true`, `undefined: true; use True`},
		{"false", `x = [false]`, `undefined: false; use False`},
		{"an f-string with the other quotes", `x = f'{a}'`, `Starlark has no f-strings`},
		{"an f-string of several lines", "y = 1\nx = f\"\"\"a\n{b}\n\"\"\" + y", `syntax x.star:2:6: Starlark has no f-strings`},
		{"two strings of several lines", "x = [\n  'a'\n  '''b\n\nc''']", `syntax x.star:3:3: got string literal, want ']'; Starlark does not join strings side by side: use +`},
		{"two strings", `x = "f" "b"`, `Starlark does not join strings side by side: use +`},
		{"precision", `x = "%.2f" % 1.5`, `round first, as in str(math.round(x * 100) / 100)`},
		{"precision in format", `x = "{:.2f}".format(1.5)`, `round first`},
		{"a generator expression", `x = any(y > 1 for y in [1])`, `Starlark has no generator expressions; use a list, [x for x in items]`},
		{"a set in braces", `x = {1, 2}`, `Starlark has no sets in braces; use set([x, y])`},
		{"sum", `x = sum([1])`, `undefined: sum; add in a loop`},
		{"isinstance", `x = isinstance(1, int)`, `use type(x) == "string"`},
		{"open", `x = open("f")`, `a script has no files; use tools such as tools.read_file`},
		{"raise", `raise ValueError("x")`, `Starlark has no exceptions`},
		{"assert", `assert 1 == 1`, `Starlark has no assert; use if and fail(text)`},
		{"with", "with open('x') as f:\n  pass", `Starlark has no with and no files`},
		{"a class", "class A:\n  pass", `Starlark has no classes`},
		{"types", "def f(a: int):\n  pass", `Starlark has no types in the text`},
		{"the type of a result", "def f() -> int:\n  pass", `Starlark has no types in the text`},
		{"a walrus", `x = (n := 5)`, `Starlark has no operator :=`},
		{"a dict of dicts", `x = {**{}}`, `use a | b`},
		{"chained comparisons", `x = 0 < 1 < 2`, `use a < b and b < c`},
		{"sort", `x = [2, 1].sort()`, `use sorted(list, key=f, reverse=True)`},
		{"an attribute of a dict", `x = {"a": 1}.a`, `use d[key] or d.get(key)`},
		{"a number in a text", `x = "a" + 1`, `unknown binary op: string + int; use str(x)`},
		{"names that begin like words of Python", "importance = trying", `syntax x.star:1:14: undefined: trying`},
		{"load", `load("a", "b")`, `there are no other modules; json and math are there without import`},
		{"import", `import os`, `syntax x.star:1:1: there are no other modules; json and math are there without import`},
		{"a tool without tools", `x = lookup(y = 1)`, `syntax x.star:1:5: undefined: lookup; a tool is called as tools.NAME(param = value)`},
		{"an unknown name", `x = 1 + y`, `syntax x.star:1:9: undefined: y`},
		{"top-level control", "n = 0\nfor i in range(3):\n  if i: n = n + i\nresult = n", `3`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := outcome(t, newScript(t, &host{}, tt.text))
			if got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Hostile scripts end by the name of a limit, soon, and without taking more memory than that.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"an endless loop", "for i in range(1000000000): pass", `limit x.star:1:1: the script reached its limit steps`},
		{"nested loops", "def main(params):\n  for i in range(1000000):\n    for j in range(1000000):\n      x = i", `limit x.star:3:5: the script reached its limit steps`},
		{"steps of parallel", "def f(x):\n  for i in range(1000000): y = x\nparallel(f, range(50))", `its limit steps`},
		{"a text beyond any memory", `x = "x" * 10000000000`, `limit x.star:1:9: the script reached its limit memory`},
		{"a text beyond the limit", `x = "x" * 900000000`, `limit x.star:1:9: the script reached its limit memory`},
		{"a doubling text", "x = 'x'\nfor i in range(100): x = x + x", `its limit memory`},
		{"a doubling list", "x = [1]\nfor i in range(100): x = x + x", `its limit memory`},
		{"a long list", `x = [0] * 900000000`, `limit x.star:1:9: the script reached its limit memory`},
		{"a list of an endless range", `x = list(range(1000000000000))`, `limit x.star:1:9: the script reached its limit memory`},
		{"a text without end", "x = []\nfor i in range(60): x = [x, x]\ny = str(x)", `limit x.star:3:8: the script reached its limit `}, // timeout or memory
		{"an encode without end", "x = []\nfor i in range(60): x = [x, x]\ny = json.encode(x)", `limit x.star:3:16: the script reached its limit `},
		{"an impossible length", "x = 'a' * 10000\nfor i in range(100): x = x.replace('a', x)", `its limit memory`}, // ended by itself, with the place, or from outside
		{"an impossible length in parallel", "def f(x):\n  for i in range(100): x = x.replace('a', x)\nparallel(f, ['a' * 10000])", `its limit memory`},
		{"a number without end", "x = 3\nfor i in range(100): x = x * x", `limit x.star:2:28: the script reached its limit `},
		{"many objects", "x = {}\nfor i in range(3000000): x[i] = [i]", `its limit`},
		{"many calls", "for i in range(1000000): tools.text()", `limit x.star:1:36: the script reached its limit calls`},
		{"many lines", "for i in range(1000000): print('a line of output')", `limit x.star:1:31: the script reached its limit limits.output`},
		{"a large result", "result = ['x' * 1000] * 2000", `limit x.star:1:1: the script reached its limit limits.result`},
		{"a large text", "result = 'x' * 2000000", `limit x.star:1:1: the script reached its limit limits.result`},
		{"a deep expression", "x = " + strings.Repeat("(", 2_000_000) + "1" + strings.Repeat(")", 2_000_000), `excessive nesting`},
		{"a long expression", "x = 1" + strings.Repeat("+1", 1_000_000), `limit x.star:1:1: the script reached its limit memory`},
		{"a tool that does not end", "x = 1\ntools.wait()", `limit x.star:2:11: the script reached its limit timeout`},
		{"a regular end at last", "def main(params):\n  return len([x for x in range(10000)])", `10000`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, &host{}, tt.text)
			if tt.name == "a long expression" {
				s.Limits.Memory = 4 << 30 // the stack of the engine is exhausted first
				s.Limits.Timeout = 2 * time.Minute
			}
			if strings.Contains(tt.want, "limit timeout") || strings.HasSuffix(tt.name, "without end") {
				s.Limits.Timeout = 2 * time.Second
			}
			got := outcome(t, s)
			for s.Limits.Timeout < time.Minute && strings.Contains(got, "x.star:1:1: the script reached its limit timeout") {
				s.Limits.Timeout *= 4 // a busy machine may spend it before the script begins
				got = outcome(t, s)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// BenchmarkCalls measures what calls cost besides the calls themselves, after the start of the
// engine.
func BenchmarkCalls(b *testing.B) {
	for _, calls := range []int{0, 1000} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			h := &host{}
			for b.Loop() {
				s := newScript(b, h, fmt.Sprintf("for i in range(%d): tools.text()", calls))
				s.Limits.Calls = 0
				if got := outcome(b, s); got != "" {
					b.Fatal(got)
				}
			}
		})
	}
}
