package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/memory"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// jsonText formats JSON for a person: indented, with invisible characters
// escaped, and colored if color is set. Text that is not JSON is only escaped.
func jsonText(data []byte, color bool) string {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return ui.Visible(string(data))
	}
	indented := text.EscapeJSON(b.Bytes())
	if !color {
		return string(indented)
	}
	return ui.Paint(jsonSpans(string(indented)), true)
}

// jsonSpans styles the tokens of valid JSON: keys, strings, numbers, words.
func jsonSpans(data string) []ui.Span {
	var spans []ui.Span
	for at := 0; at < len(data); {
		n := tokenLength(data[at:])
		token, rest := data[at:at+n], strings.TrimLeft(data[at+n:], " ")
		style := ui.Style(0)
		switch c := token[0]; {
		case c == '"' && strings.HasPrefix(rest, ":"):
			style = ui.Blue | ui.Bold
		case c == '"':
			style = ui.Green
		case c == 't' || c == 'f':
			style = ui.Yellow
		case c == 'n':
			style = ui.Dim
		case c == '-' || c >= '0' && c <= '9':
			style = ui.Cyan
		}
		spans = append(spans, ui.Span{Text: token, Style: style})
		at += n
	}
	return spans
}

// tokenLength returns the length of the string, the scalar or the run of
// punctuation at the beginning of valid JSON.
func tokenLength(data string) int {
	const punctuation = "{}[],: \n"
	switch {
	case data[0] == '"':
		for i := 1; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(data)
	case strings.IndexByte(punctuation, data[0]) >= 0:
		return len(data) - len(strings.TrimLeft(data, punctuation))
	}
	if n := strings.IndexAny(data, punctuation); n > 0 {
		return n
	}
	return len(data)
}

// Filter is a compiled --jq expression.
type Filter struct {
	name string // of the flag or variable that sets it
	code *gojq.Code
}

func newFilter(name, expression string) (*Filter, error) {
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("%s: not a jq expression: %w", name, err),
			Hint: "quote the expression, as in --jq '.tools[].name'"}
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("%s: not a jq expression: %w", name, err)}
	}
	return &Filter{name: name, code: code}, nil
}

// print prints each value that the expression yields on its own line: a string as
// plain text, like gh, anything else as JSON, indented on a terminal. It stops when
// ctx is done and after filterLimit, because an expression may run forever.
func (f *Filter) print(ctx context.Context, text io.Writer, encoded func([]byte) error, data []byte) error {
	limit, over := filterLimit, Usage(fmt.Sprintf("%s: the expression did not end within %s", f.name, filterLimit),
		"run jq itself on the JSON output")
	if ctx.Err() != nil { // print what an interrupted run has
		limit, over = interruptedLimit, context.Cause(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, over)
	defer cancel()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // gojq keeps big integers
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("reading the result for %s: %w", f.name, err)
	}
	ctx, stop := memory.Limit(ctx, filterMemory+8*uint64(len(data)))
	defer stop()
	iter := f.code.RunWithContext(ctx, doc)
	for {
		v, err := memory.Await(ctx, func() any { return next(iter) })
		switch v := v.(type) {
		case string:
			_, err = fmt.Fprintln(text, v)
		case []byte:
			err = encoded(v)
		case error:
			if v == io.EOF {
				return nil
			}
			err = &UsageError{Err: fmt.Errorf("%s: %w", f.name, v)}
		}
		if cause := context.Cause(ctx); cause != nil {
			if errors.Is(cause, memory.ErrLimit) {
				cause = &UsageError{Err: fmt.Errorf("%s: %w", f.name, cause), Hint: "run jq itself on the JSON output"}
			}
			return cause
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next value in printed form: the text of a string, or JSON. It returns the error
// if the expression failed, and io.EOF at the end.
func next(iter gojq.Iter) any {
	v, ok := iter.Next()
	switch v := v.(type) {
	case error:
		if halt, ok := errors.AsType[*gojq.HaltError](v); ok && halt.Value() == nil {
			return io.EOF
		}
		return v
	case string:
		return ui.Visible(v)
	}
	if !ok {
		return io.EOF
	}
	line, err := gojq.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return line
}

// Limits on an expression; a large input may take more memory.
const (
	filterLimit      = 30 * time.Second
	interruptedLimit = time.Second // in an interrupted run
	filterMemory     = 256 << 20
)
