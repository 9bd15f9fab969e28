package listcmd

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// print prints the document with the tools. If all is set, it includes their overrides.
func (d Document) print(ios *cli.IO, tools []*registry.Tool, all bool) error {
	const share = 64
	shares := make([]encoded, (len(tools)+share-1)/share)
	errs := make([]error, len(shares))
	var wg sync.WaitGroup
	for i := range shares {
		wg.Go(func() { // fingerprints and JSON take most of the time of a long list
			shares[i], errs[i] = encode(tools[i*share:min((i+1)*share, len(tools))], all)
		})
	}
	rest, err := cli.EncodeJSON(d)
	wg.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("encoding the list: %w", err)
	}
	needsAll := ios.JQ != nil || ios.OutTTY
	data := []byte(`{"tools":[`)
	for i, share := range shares {
		if i > 0 {
			data = append(data, ',')
		}
		data = share.appendTo(data)
		if !needsAll { // a long list is never in memory as a whole
			if _, err := ios.Out.Write(text.EscapeJSON(data)); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	data = append(append(data, ']'), bytes.TrimPrefix(rest, []byte(`{"tools":null`))...)
	switch {
	case ios.JQ != nil:
		return ios.PrintFiltered(data)
	case ios.OutTTY:
		return ios.PrintEncoded(data)
	}
	_, err = ios.Out.Write(text.EscapeJSON(data))
	return err
}

// encoded is the JSON of tools with commas between them. In place of each schema it has a marker, a
// text that cannot occur in a definition.
type encoded struct {
	tools, marker []byte
	schemas       []json.RawMessage
}

// encode encodes tools. Package encoding/json would check and copy the schemas byte by byte, so it
// gets the markers.
func encode(tools []*registry.Tool, all bool) (encoded, error) {
	out := listedTools(tools, all)
	e := encoded{marker: []byte(jsonx.Quote(rand.Text()))}
	for i := range out {
		d := *out[i].Definition
		for _, schema := range []*json.RawMessage{&d.InputSchema, &d.OutputSchema} {
			if len(*schema) > 0 {
				e.schemas = append(e.schemas, *schema)
				*schema = e.marker
			}
		}
		out[i].Definition = &d
	}
	data, err := cli.EncodeJSON(any(out)) // any, so that the generated reference does not list it as a document
	e.tools = bytes.TrimSuffix(bytes.TrimPrefix(data, []byte("[")), []byte("]\n"))
	return e, err
}

func (e encoded) appendTo(data []byte) []byte {
	rest := e.tools
	for _, schema := range e.schemas {
		before, after, _ := bytes.Cut(rest, e.marker)
		data, rest = jsonx.AppendCompact(append(data, before...), schema), after
	}
	return append(data, rest...)
}

func printTools(ios *cli.IO, tools []*registry.Tool, hidden []registry.Hidden, all bool) error {
	t := ui.Table{Header: []string{"NAME", "SOURCE", "CATEGORY", "DISPLAY NAME", "DESCRIPTION"},
		Spare: []string{"DISPLAY NAME", "CATEGORY", "SOURCE"}}
	sources := map[string]bool{}
	for _, tool := range tools {
		display := tool.DisplayName
		if ios.OutTTY && display == tool.Name {
			display = "" // same as the first column
		}
		t.Add(tool.Name, tool.Source, string(tool.Category), display, text.FirstSentence(tool.Description))
		sources[tool.Source] = true
	}
	if all {
		several := map[string]int{} // tools by name
		for _, tool := range tools {
			several[tool.Name]++
		}
		for _, h := range hidden {
			several[h.Name]++
		}
		for _, h := range hidden {
			if several[h.Name] > 1 && h.Version != "" {
				h.Name += "@" + h.Version
			}
			reason := "hidden: " + h.Reason
			if h.Setting != "" {
				reason += " (" + h.Setting + ")"
			}
			t.Add(h.Name, h.Source, "-", "-", reason)
		}
	}
	ios.Summary("%s from %s%s", text.Count(len(tools), "tool"),
		text.Count(len(sources), "source"), hiddenCount(len(hidden), all))
	return ios.PrintTable(&t)
}

// hiddenCount says how many tools are hidden, and how to see them.
func hiddenCount(n int, all bool) string {
	switch {
	case n == 0:
		return ""
	case all:
		return fmt.Sprintf(", %d hidden", n)
	}
	return fmt.Sprintf(", %d hidden (--all shows them)", n)
}

// printExamples prints each example as a command after its description as a
// comment.
func printExamples(ios *cli.IO, reg *registry.Registry, tools []*registry.Tool) error {
	var b strings.Builder
	for _, t := range tools {
		for _, e := range t.Examples {
			if e.Description != "" {
				b.WriteString("# " + ui.Line(e.Description) + "\n")
			}
			b.WriteString(cli.CallLine(engine.Definition(reg, t).Name, &t.Definition, e.Params) + "\n")
		}
	}
	if b.Len() == 0 {
		ios.Notef("the tool has no examples")
	}
	_, err := io.WriteString(ios.Out, b.String())
	return err
}
