package gemini

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// sanitizeFor parses, sanitizes and encodes a schema.
func sanitizeFor(t testing.TB, schema []byte) (text string, whole bool) {
	t.Helper()
	n, err := jsonx.Parse(schema, jsonx.Options{})
	if err != nil {
		t.Fatalf("parsing %s: %v", schema, err)
	}
	_, whole = Sanitize(n)
	return string(n.AppendTo(nil)), whole
}

// ordered encodes JSON with a uniform spelling of strings, so that documents can be
// compared regardless of escapes, but including key order.
func ordered(t testing.TB, raw []byte) string {
	t.Helper()
	n, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil {
		t.Fatalf("parsing %s: %v", raw, err)
	}
	var respell func(*jsonx.Value)
	respell = func(n *jsonx.Value) {
		if n.Is(jsonx.String) {
			n.Token = string(jsonx.AppendQuote(nil, n.Text()))
		}
		for i := range n.Members {
			respell(n.Members[i].Value)
		}
		for _, v := range n.Items {
			respell(v)
		}
	}
	respell(n)
	return string(n.AppendTo(nil))
}

// TestSanitizeVectors compares with the output of Gemini CLI, including key order.
func TestSanitizeVectors(t *testing.T) {
	var vectors struct {
		Count int
		Cases []struct {
			Name      string
			Input     json.RawMessage
			InputText string
			Output    json.RawMessage
			Unchanged bool
			Error     json.RawMessage
		}
	}
	data, err := os.ReadFile("testdata/sanitize.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) != vectors.Count || vectors.Count == 0 {
		t.Fatalf("read %d cases of %d", len(vectors.Cases), vectors.Count)
	}
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			input := c.Input
			if c.InputText != "" {
				input = json.RawMessage(c.InputText)
			}
			want := c.Output
			if c.Unchanged {
				want = c.Input
			}
			got, whole := sanitizeFor(t, input)
			if diff := cmp.Diff(ordered(t, want), ordered(t, []byte(got))); diff != "" {
				t.Errorf("sanitised schema (-want +got):\n%s", diff)
			}
			if hasError := c.Error != nil; hasError == whole {
				t.Errorf("failed in Gemini CLI: %v, complete here: %v", hasError, whole)
			}
		})
	}
}

func TestSanitizeContinuesAfterInvalidPart(t *testing.T) {
	const in = `{"type":"object","properties":{"a":{"anyOf":5,"enum":[1]},"b":{"enum":[1]}}}`
	got, whole := sanitizeFor(t, []byte(in))
	want := `{"type":"object","properties":{"a":{"anyOf":5,"enum":[1]},"b":{"enum":["1"],"type":"STRING"}}}`
	if got != want || whole {
		t.Errorf("got %s, whole %v", got, whole)
	}
}

// The result of Respell is that of JSON.stringify(JSON.parse(document)) in Node.js.
func TestRespell(t *testing.T) {
	const in = `{"b":1.0,"2":1E2,"a":"\u0041\/","10":[-0,9007199254740993],"01":{"x":null},"1":"\u001F"}`
	const want = `{"1":"\u001f","2":100,"10":[0,9007199254740992],"b":1,"a":"A/","01":{"x":null}}`
	n, err := jsonx.Parse([]byte(in), jsonx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Respell(n); string(n.AppendTo(nil)) != want {
		t.Errorf("got %s, want %s", n.AppendTo(nil), want)
	}
}

func TestScriptNumber(t *testing.T) {
	// Each value is the result of String(JSON.parse(key)) in Node.js.
	for token, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "1": "1", "-1.50": "-1.5", "1e3": "1000", "1E+2": "100",
		"100000000000000000000": "100000000000000000000", "1e21": "1e+21", "123e20": "1.23e+22",
		"0.000001": "0.000001", "0.0000001": "1e-7", "-1.5e-10": "-1.5e-10", "5e-324": "5e-324",
		"9007199254740993": "9007199254740992", "1e400": "Infinity", "-1e400": "-Infinity", "1e-400": "0",
		"0.1": "0.1", "123456789.125": "123456789.125", "1.7976931348623157e308": "1.7976931348623157e+308",
	} {
		if got := scriptNumber(token); got != want {
			t.Errorf("scriptNumber(%s) = %s, want %s", token, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, seed := range []string{
		`{"anyOf":[{"type":"string"},null,[1]],"default":null}`, `{"enum":[1,null,{"a":[]},"x",true,[null]]}`,
		`{"type":"STRING","format":"email"}`, `{"properties":[{"enum":[1]}],"items":"x"}`, `{"anyOf":"text","default":1}`,
		`{"a":1,"a":2}`, `"\ud800"`, `[`, "{\"\xff\":\"\u2028\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		n, err := jsonx.Parse(schema, jsonx.Options{Depth: 100})
		if err != nil {
			return
		}
		Sanitize(n)
		once := n.AppendTo(nil)
		if !json.Valid(once) {
			t.Fatalf("%q became %q", schema, once)
		}
		n, err = jsonx.Parse(once, jsonx.Options{Depth: 100})
		if err != nil {
			t.Fatalf("cannot read back %q: %v", once, err)
		}
		Sanitize(n)
		if twice := n.AppendTo(nil); string(once) != string(twice) {
			t.Fatalf("not idempotent: %q, then %q", once, twice)
		}
	})
}
