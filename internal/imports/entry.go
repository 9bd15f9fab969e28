package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// entry is one server as an entry of mcpServers.
type entry struct {
	Command        string          `json:"command,omitempty"`
	Args           []string        `json:"args,omitempty"`
	Env            pairs           `json:"env,omitempty"`
	Cwd            string          `json:"cwd,omitempty"`
	URL            string          `json:"url,omitempty"`
	HTTPURL        string          `json:"httpUrl,omitempty"`
	Type           string          `json:"type,omitempty"`
	Headers        pairs           `json:"headers,omitempty"`
	Timeout        any             `json:"timeout,omitempty"`
	ConnectTimeout any             `json:"connectTimeout,omitempty"`
	Trust          bool            `json:"trust,omitempty"`
	Description    string          `json:"description,omitempty"`
	IncludeTools   *[]string       `json:"includeTools,omitempty"`
	ExcludeTools   []string        `json:"excludeTools,omitempty"`
	OAuth          json.RawMessage `json:"oauth,omitempty"`
	Disabled       bool            `json:"disabled,omitempty"`
}

// expand applies a program's rules for variables to every string that they
// hold for, and keeps what they leave from being taken for ours.
func (e *entry) expand(d dialect) error {
	var failed []error
	apply := func(s *string, secret bool) {
		out, err := d(*s, secret)
		if err != nil {
			failed = append(failed, err)
			return
		}
		*s = out
	}
	for _, s := range []*string{&e.Command, &e.Cwd, &e.URL, &e.HTTPURL} {
		apply(s, false)
	}
	for i := range e.Args {
		apply(&e.Args[i], false)
	}
	for i := range e.Env {
		apply(&e.Env[i].value, true)
	}
	for i := range e.Headers {
		apply(&e.Headers[i].value, true)
	}
	return errors.Join(failed...)
}

// pairs is an object of strings in file order.
type pairs []pair

type pair struct{ name, value string }

// MarshalJSON writes the pairs as an object.
func (p pairs) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(e.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object of strings, numbers and booleans; null members
// are left out.
func (p *pairs) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	start, err := dec.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('{') {
		return errors.New("an object of strings is expected")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		value, err := dec.Token()
		if err != nil {
			return err
		}
		switch v := value.(type) {
		case nil:
		case json.Delim:
			return errors.New("an object of strings is expected")
		default:
			*p = append(*p, pair{fmt.Sprint(name), fmt.Sprint(v)})
		}
	}
	return nil
}

// imported makes the result for one server.
func imported(s document.Field, e entry, d dialect, problem string) settings.ImportedServer {
	out := settings.ImportedServer{Name: s.Name, Line: s.Line, Col: s.Col, Problem: problem}
	if problem != "" {
		return out
	}
	if err := e.expand(d); err != nil {
		out.Problem = err.Error()
		return out
	}
	data, err := json.Marshal(e)
	if err != nil {
		out.Problem = "its entry cannot be read"
		return out
	}
	out.JSON = data
	return out
}
