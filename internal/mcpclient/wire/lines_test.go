package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func linesOf(s string, most int64) *lineReader {
	n := &CurrentLimit{}
	n.Store(Limit{most, "limits.frame"})
	return newLineReader(strings.NewReader(s), n, slog.New(slog.DiscardHandler))
}

func TestLines(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200_000) + `"}`
	tests := []struct {
		name, in string
		want     []string
		noise    int64
	}{
		{"plain", "{}\n[1]\n", []string{"{}", "[1]"}, 0},
		{"no newline at the end", "{}\n{\"a\":1}", []string{"{}", `{"a":1}`}, 0},
		{"CRLF, blanks, BOM", "\xEF\xBB\xBF{}\r\n\r\n  \n\t{\"a\":1} \r\n", []string{"{}", `{"a":1}`}, 0},
		{"noise", "hello\n{}\n{oops\n5\n\"text\"\n{}\n", []string{"{}", "{}"}, 4},
		{"two on a line", "{}{}\n{}\n", []string{"{}"}, 1},
		{"longer than the buffer", long + "\n{}\n", []string{long, "{}"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := linesOf(tt.in, 1<<20)
			var got []string
			for {
				line, err := l.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if n := l.skipped; n.Lines != tt.noise {
				t.Errorf("noise %+v, want %d lines", n, tt.noise)
			}
		})
	}
}

// A sender that has checked its messages may still end in the middle of one.
func TestCheckedLinesAreComplete(t *testing.T) {
	l := linesOf("{\"a\":1}\n{\"b\":", 1<<20)
	l.checked = true
	if line, err := l.next(); string(line) != `{"a":1}` || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := l.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", line, err)
	}
}

// An answer that is too long is skipped, if it is known whose answer it is.
func TestLongLineIsSkipped(t *testing.T) {
	x := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, in string
		want     any // id; nil means unknown
	}{
		{"first", `{"jsonrpc":"2.0","id":7,"result":{"id":8,"a":"` + x + `"}}`, int64(7)},
		{"first of all", `{"id": "7", "jsonrpc":"2.0","result":"` + x + `"}`, "7"},
		{"a whole number with a fraction", `{"jsonrpc":"2.0","id":7.0,"result":"` + x + `"}`, int64(7)},
		{"last", `{"result":{"a":"` + x + `","id":8},"jsonrpc":"2.0","id":7}`, int64(7)},
		{"last but jsonrpc", `{"result":{"id":8,"a":"` + x + `"}, "id": 7, "jsonrpc":"2.0"}`, int64(7)},
		{"in the result", `{"result":{"a":"` + x + `","id":8}}`, nil},
		{"in the middle", `{"a":"` + x + `","id":8,"b":"` + x + `"}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := linesOf(tt.in+"\r\n{}\n", 60_000)
			l.skipsLong = true
			_, err := l.next()
			var bad *badMessageError
			if !errors.As(err, &bad) || !bad.long || bad.id.Raw() != tt.want {
				t.Fatalf("got %+v, want the id %v", err, tt.want)
			}
			if line, err := l.next(); string(line) != "{}" {
				t.Errorf("the next line: %q, %v", line, err)
			}
		})
	}
	l := linesOf(`{"a":"`+strings.Repeat(x, 10), 60_000)
	l.skipsLong = true
	var over *AnswerError
	if _, err := l.next(); !errors.As(err, &over) {
		t.Errorf("a line without an end: %v", err)
	}
}

func TestDecodeMessage(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":7,"result":{"a":1.50}}`, `response 7 {"a":1.50} <nil>`},
		{`{"jsonrpc":"2.0","id":"7","result":[]}`, `response 7 [] <nil>`},
		{`{"result":{"id":9},"id":7,"jsonrpc":"2.0"}`, `response 7 {"id":9} <nil>`},
		{`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, `response 7 {} <nil>`},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}`, `response 7  m`},
		{`{"jsonrpc":"2.0","id":7.0,"method":null,"params":null,"result":{},"error":null}`, `response 7 {} <nil>`},
		{`{"jsonrpc":"2.0","id":7.0,"method":null,"params":null,"result":null,"error":{"code":-1,"message":"m"}}`, `response 7  m`},
		{`{"jsonrpc":"2.0","id":7.0,"method":"ping","result":null,"error":null}`, `request 7 ping`},
		{`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `request 7 ping`},
		{`{"jsonrpc":"2.0","method":"ping","params":{}}`, `request <nil> ping`},
		{`{"jsonrpc":"1.0","id":7,"result":{}}`, `malformed message: its "jsonrpc" is not "2.0" (7)`},
		{`{"jsonrpc":"2.0","id":7.5,"result":{}}`, `malformed message: neither a request nor an answer (<nil>)`},
		{`{"jsonrpc":"2.0","id":1e3,"result":{}}`, `malformed message: neither a request nor an answer (<nil>)`},
		{`{"jsonrpc":"2.0","id":true,"result":{}}`, `malformed message: neither a request nor an answer (<nil>)`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, `malformed message: neither a request nor an answer (<nil>)`},
		{`{}`, `malformed message: its "jsonrpc" is not "2.0" (<nil>)`},
	}
	for _, tt := range tests {
		m, err := decodeMessage(json.RawMessage(tt.in))
		got := ""
		var bad *badMessageError
		switch m := m.(type) {
		case *jsonrpc.Response:
			got = fmt.Sprintf("response %v %s %v", m.ID.Raw(), m.Result, m.Error)
		case *jsonrpc.Request:
			got = fmt.Sprintf("request %v %s", m.ID.Raw(), m.Method)
		default:
			if !errors.As(err, &bad) {
				t.Fatalf("%s: %v", tt.in, err)
			}
			got = fmt.Sprintf("%v (%v)", err, bad.id.Raw())
		}
		if got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"{}\n", "\xEF\xBB\xBF[1]\r\nx\n", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "[{\n{\"jsonrpc\"", "{\"a\":\"\\\"}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := linesOf(string(data), 1<<16)
		for range len(data) + 2 {
			line, err := l.next()
			var bad *badMessageError
			switch {
			case errors.As(err, &bad):
				continue
			case err != nil:
				return
			case !json.Valid(line):
				t.Fatalf("line %q", line)
			}
			if line[0] == '{' {
				_, _ = decodeMessage(line) // must not panic
			}
		}
		t.Error("no end")
	})
}

func BenchmarkLines20MB(b *testing.B) {
	line := `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`line of text\n`, 20<<20/14) + `"}]}}` + "\n"
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		raw, err := linesOf(line, 64<<20).next()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := decodeMessage(raw); err != nil {
			b.Fatal(err)
		}
	}
}
