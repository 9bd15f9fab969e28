package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/terminal"
	"github.com/toolreg/toolreg/internal/text"
)

// Filter is a compiled --jq expression.
type Filter struct{ code *gojq.Code }

func newFilter(expression string) (*Filter, error) {
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--jq: %w", err), Hint: "quote the expression, as in --jq '.tools[].name'"}
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--jq: %w", err)}
	}
	return &Filter{code: code}, nil
}

// Print writes each value that the expression yields on a line: a string as
// its text, as gh does, everything else as JSON.
func (f *Filter) Print(w io.Writer, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // gojq keeps big integers
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("reading the result for --jq: %w", err)
	}
	iter := f.code.Run(doc)
	for {
		v, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, isErr := v.(error); isErr {
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
				return nil
			}
			return &UsageError{Err: fmt.Errorf("--jq: %w", err)}
		}
		if err := printJQ(w, v); err != nil {
			return err
		}
	}
}

func printJQ(w io.Writer, v any) error {
	if s, ok := v.(string); ok {
		_, err := fmt.Fprintln(w, terminal.Visible(s))
		return err
	}
	line, err := gojq.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding for --jq: %w", err)
	}
	_, err = w.Write(append(text.EscapeJSON(line), '\n'))
	return err
}
