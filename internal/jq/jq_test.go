package jq_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
)

// TestMain lets the test binary act as the process that evaluates expressions.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "evaluate" {
		code := 0
		if jq.Evaluate(context.Background(), os.Stdin, os.Stdout) != nil {
			code = 1
		}
		syscall.Exit(code) // os.Exit takes a second with the race detector
	}
	os.Exit(m.Run())
}

func evaluator(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "evaluate"}
}

func TestIsTrue(t *testing.T) {
	tests := []struct {
		expression string
		want       bool
		wrong      string // part of the error, "" for none
	}{
		{`.amount > 100`, true, ""},
		{`.amount > 1000`, false, ""},
		{`.absent`, false, ""},
		{`.absent > 3`, false, ""},
		{`.big == 12345678901234567890`, true, ""},
		{`.name`, false, "it returned a string, not true or false"},
		{`.`, false, "it returned an object, not true or false"},
		{`.amount`, false, "it returned a number"},
		{`empty`, false, "it returned no value"},
		{`.amount > 1, .amount > 2`, false, "more than one value"},
		{`.amount.x`, false, "expected an object but got: number"},
		{`def f: f; f`, false, "it took longer than 1s"},
		{`halt`, false, "halt"},
		{`env | length > 0`, false, ""},
		{`$ENV.HOME == null`, true, ""},
		{`input == 1`, false, "input"},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			e, err := jq.Compile(tt.expression)
			if err != nil {
				if tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong) {
					t.Fatal(err)
				}
				return
			}
			input, err := jq.Decode([]byte(`{"amount": 250, "name": "x", "big": 12345678901234567890}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.IsTrue(t.Context(), input)
			if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("IsTrue = %v, %v; want %v, %q", got, err, tt.want, tt.wrong)
			}
		})
	}
}

func TestValueIsLimited(t *testing.T) {
	for _, tt := range []struct{ expression, wrong string }{
		{`reduce range(20000) as $i (null; [.])`, "nested deeper than 10000 levels"},
		{`reduce range(20000) as $i (null; {a: .})`, "nested deeper than 10000 levels"},
		{`reduce range(10000) as $i (null; [.])`, ""},
	} {
		e, err := jq.Compile(tt.expression)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Value(t.Context(), nil)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: error %v, want %q", tt.expression, err, tt.wrong)
		}
	}
}

// An evaluator that does not answer is ended too.
func TestEvaluatorIsLimited(t *testing.T) {
	t.Parallel()
	e, err := jq.Compile(`.`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Isolated([]string{"/bin/sleep", "600"}).Value(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "it took longer than 10s") {
		t.Errorf("error %v", err)
	}
}

// An expression evaluated in a separate process has the same value, and its memory
// is limited too.
func TestSeparateProcess(t *testing.T) {
	tests := []struct{ expression, wrong string }{
		{`.`, ""},
		{`.big + 1`, ""},
		{`"é\u0000\u2028<"`, ""},
		{`null`, ""},
		{`empty`, "it returned no value"},
		{`1, 2`, "it returned more than one value"},
		{`error("no")`, "error: no"},
		{`env | length`, ""},
		{`reduce range(20000) as $i (null; [.])`, "nested deeper than 10000 levels"},
		{`def f: f; f`, "it took longer than 1s"},
		{`[range(1e12)]`, "it took"},
		{`"x" | def f: (. + .) | f; f`, "it took"},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			e, err := jq.Compile(tt.expression)
			if err != nil {
				t.Fatal(err)
			}
			input, err := jq.Decode([]byte(`{"a": [1, "x", null, 1.5], "big": 12345678901234567890}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Isolated(evaluator(t)).ValueBriefly(t.Context(), input)
			if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("%v, %v, want %q", got, err, tt.wrong)
			}
			if err != nil {
				return
			}
			here, err := e.ValueBriefly(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := jq.Text(here)
			if text, _, textErr := jq.Text(got); text != want || err != nil || textErr != nil {
				t.Errorf("%s, %v, %v, want %s", text, err, textErr, want)
			}
		})
	}
	e, err := jq.Compile(`.`)
	if err != nil {
		t.Fatal(err)
	}
	large, err := jq.Compile(`"x" * 4e8`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = large.Isolated(evaluator(t)).Value(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "it took") && !strings.Contains(err.Error(), "output limit reached") { // the memory, the time on a busy machine, or the output: what is noticed first
		t.Errorf("%v", err)
	}
	if _, err := e.Isolated([]string{"/nonexistent"}).Value(t.Context(), nil); err == nil {
		t.Error("no error without the program")
	}
	if _, err := e.Isolated([]string{"/bin/true"}).Value(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("%v from a program that prints nothing", err)
	}
}

// $caller is who makes the call, in a separate process too.
func TestCaller(t *testing.T) {
	e, err := jq.Compile(`$caller`)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), "null"},
		{caller.With(t.Context(), &caller.Caller{Name: "alice", Client: "agent", Version: "1"}), `{"client":"agent","groups":[],"name":"alice","version":"1"}`},
		{caller.With(t.Context(), &caller.Caller{Client: "host"}), `{"client":"host","groups":[]}`},
	} {
		for _, e := range []*jq.Expression{e, e.Isolated(evaluator(t))} {
			got, err := e.ValueBriefly(one.ctx, nil)
			if text, _, _ := jq.Text(got); text != one.want || err != nil {
				t.Errorf("%s, %v, want %s", text, err, one.want)
			}
		}
	}
}

// Memory that the process allocates elsewhere does not stop an evaluation.
func TestOtherMemoryDoesNotCount(t *testing.T) {
	e, err := jq.Compile(`[range(500000)] | length`)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*jq.Expression{"here": e, "apart": e.Isolated(evaluator(t))} {
		t.Run(name, func(t *testing.T) {
			done, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				var held [][]byte
				for range 16 {
					held = append(held, make([]byte, 64<<20)) // not touched, so it costs nothing
				}
				<-done
				runtime.KeepAlive(held)
			}()
			got, err := e.Value(t.Context(), nil)
			close(done)
			<-ended
			if fmt.Sprint(got) != "500000" || err != nil {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, text := range []string{"", ".a |", "nofunc", `include "x"; .`, `import "x" as x; .`} {
		if _, err := jq.Compile(text); err == nil && text != "" {
			t.Errorf("Compile(%q) succeeded", text)
		}
	}
}

func BenchmarkIsTrue(b *testing.B) {
	e, err := jq.Compile(`.amount > 100 and (.name | startswith("x"))`)
	if err != nil {
		b.Fatal(err)
	}
	input, _ := jq.Decode([]byte(`{"amount": 250, "name": "x"}`))
	for b.Loop() {
		if ok, err := e.IsTrue(b.Context(), input); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
