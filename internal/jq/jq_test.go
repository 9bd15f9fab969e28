package jq_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jq"
)

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
		{`[range(1e9)] | length > 0`, false, "it took"},
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

// A composite has no time limit of its own, so its expressions need one.
func TestValueIsLimited(t *testing.T) {
	for _, tt := range []struct{ expression, wrong string }{
		{`reduce range(20000) as $i (null; [.])`, "nested deeper than 10000 levels"},
		{`reduce range(20000) as $i (null; {a: .})`, "nested deeper than 10000 levels"},
		{`reduce range(10000) as $i (null; [.])`, ""},
		{`[range(1e9)] | length`, "it took"},
		{`def f: f; f`, "it took longer than 10s"},
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
