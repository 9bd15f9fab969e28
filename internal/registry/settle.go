package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// ErrSchemaInvalid is the reason why a tool is quarantined whose input schema cannot be used.
var ErrSchemaInvalid = errors.New("its input schema is not valid")

// SchemaJSON returns the limits on the JSON of untrusted schemas.
func SchemaJSON() jsonx.Options { return jsonx.Options{Depth: MaxDepth, Number: boundFault} }

func newSettler() *schema.Settler {
	return &schema.Settler{Parser: jsonx.Parser{Options: SchemaJSON()}}
}

// boundFault says what is wrong with a number in a schema; "" if nothing is. Some parsers of
// declarations reject a document with a number that does not fit into a double.
func boundFault(token string) string {
	fault := numberFault(token)
	if fault == "" && (len(token) > 300 || strings.ContainsAny(token, "eE")) {
		if _, err := strconv.ParseFloat(token, 64); err != nil {
			return fmt.Sprintf("number %.40s is out of range", token)
		}
	}
	return fault
}

// LeftOut ends the message about a tool that is quarantined because of its schema.
const LeftOut = "; the tool was left out"

// Settle settles the schemas of discovered tools. Large listings are settled on all processors.
func Settle(tools []Tool) []Diagnostic {
	const share = 64
	diags := make([][]Diagnostic, (len(tools)+share-1)/share)
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range diags {
		part := func() {
			s := newSettler()
			for j := i * share; j < min((i+1)*share, len(tools)); j++ {
				diags[i] = append(diags[i], tools[j].settle(s)...)
			}
		}
		if len(diags) == 1 {
			part()
			break
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			part()
		})
	}
	wg.Wait()
	return slices.Concat(diags...)
}

// settle replaces the schemas of a tool with what toolreg understands of them. A tool with an
// unusable input schema is quarantined. An output schema that other clients could not use is
// removed, and results are not checked against it.
func (t *Tool) settle(s *schema.Settler) (diags []Diagnostic) {
	if t.Source == SourceBuiltin || t.Quarantine != nil {
		return nil
	}
	diagnose := func(severity Severity, code, message, hint string) {
		diags = append(diags, Diagnostic{
			Severity: severity,
			Code:     code,
			Source:   t.Source,
			Tool:     t.Name,
			Message:  message,
			Hint:     hint,
		})
	}
	for _, raw := range []*json.RawMessage{&t.InputSchema, &t.OutputSchema, &t.Annotations} {
		if jsonx.IsNull(*raw) || jsonx.IsEmptyList(*raw) { // PHP writes an empty object as a list
			*raw = nil
		}
	}
	if len(t.InputSchema) > 0 {
		in, err := settleObject(s, t.InputSchema)
		if err != nil {
			in = schema.Settled{}
			t.Quarantine = fmt.Errorf("%w: %w", ErrSchemaInvalid, err)
			diagnose(SeverityWarning, "schema_invalid", t.Quarantine.Error()+LeftOut,
				"report this to the author of the tool")
		}
		t.keepSent(&t.SentInput, &t.InputSchema, in.Raw)
		for _, note := range in.Open {
			diagnose(SeverityInfo, "schema_partly_checked", "in its input schema, "+note, "")
		}
	}
	if len(t.OutputSchema) > 0 {
		out, err := settleOutput(s, t.OutputSchema)
		if err != nil {
			out = schema.Settled{}
			diagnose(SeverityInfo, "schema_invalid", "its output schema is not used: "+err.Error(), "")
		}
		t.keepSent(&t.SentOutput, &t.OutputSchema, out.Raw)
	}
	return diags
}

func settleSchema(s *schema.Settler, raw json.RawMessage) (schema.Settled, error) {
	if len(raw) > MaxSchemaBytes {
		return schema.Settled{}, fmt.Errorf("schema has %d bytes, but the limit is %d", len(raw), MaxSchemaBytes)
	}
	return s.Settle(raw)
}

func settleObject(s *schema.Settler, raw json.RawMessage) (schema.Settled, error) {
	settled, err := settleSchema(s, raw)
	if err == nil {
		err = schema.CheckObject(settled.Tree)
	}
	return settled, err
}

// settleOutput settles the schema of results. A reference that leads nowhere is an error, because
// clients of serve would refuse the whole list of tools.
func settleOutput(s *schema.Settler, raw json.RawMessage) (schema.Settled, error) {
	settled, err := settleObject(s, raw)
	if err == nil && len(settled.Open) > 0 {
		err = errors.New(settled.Open[0])
	}
	return settled, err
}

// SettleDeclared settles a schema that is declared but never checked. The error says why it cannot
// be used.
func SettleDeclared(raw json.RawMessage) (json.RawMessage, error) {
	settled, err := settleSchema(newSettler(), raw)
	return settled.Raw, err
}

// keepSent sets a schema to a settled one, and keeps what was sent if that differs.
func (t *Tool) keepSent(sent, now *json.RawMessage, settled json.RawMessage) {
	if string(settled) != string(*now) {
		*sent, *now = *now, settled
	}
}

// checkable turns a settled schema into one that the library compiles, with a note for each
// pattern that cannot be checked.
type checkable struct {
	notes []string
	open  map[*jsonx.Value]bool // schemas without a pattern of theirs
}

// walk changes v and everything below it; is is the kind of v. The value of an
// unknown keyword is treated as a schema, because a reference may lead there.
func (c *checkable) walk(v *jsonx.Value, is schema.Content) {
	for _, item := range v.Items {
		c.walk(item, is)
	}
	isSchema := is == schema.Schemas || is == schema.Other
	if isSchema && v.Kind == jsonx.Object {
		v.Members = slices.DeleteFunc(v.Members, func(m jsonx.Member) bool { return isUnchecked(m.Name) })
		c.patterns(v)
	}
	for _, m := range v.Members {
		below := schema.Data
		if isSchema {
			below = schema.Under(m.Name)
		} else if is == schema.Named {
			below = schema.Schemas
		}
		c.walk(m.Value, below)
	}
}

// isUnchecked reports whether a keyword has no effect on the validity of values, or none in
// a settled schema.
func isUnchecked(keyword string) bool {
	switch keyword {
	case "title", "description", "$comment", "format", "deprecated", "readOnly", "writeOnly",
		"contentEncoding", "contentMediaType", "contentSchema", "$schema", "$id", "$anchor", "$dynamicAnchor",
		"$recursiveAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary", "regexProperties":
		return true
	}
	return false
}

// patterns rewrites or removes the regular expressions of one schema.
func (c *checkable) patterns(n *jsonx.Value) {
	if p := n.Get("pattern"); p.Is(jsonx.String) {
		if re := schema.Pattern(p.Text()); re != nil {
			n.Set("pattern", jsonx.NewString(re.String()))
		} else {
			n.Remove("pattern")
			c.open[n] = true
			c.notes = append(c.notes, fmt.Sprintf("pattern %q is not checked: RE2 does not support it", p.Text()))
		}
	}
	props := n.Get("patternProperties")
	if !props.Is(jsonx.Object) {
		return
	}
	for _, m := range slices.Clone(props.Members) {
		re := schema.Pattern(m.Name)
		if re != nil && re.String() == m.Name {
			continue
		}
		props.Remove(m.Name)
		if re != nil {
			props.Set(re.String(), m.Value)
			continue
		}
		// Without the pattern, it is unknown which keys are additional.
		n.Remove("additionalProperties")
		n.Remove("unevaluatedProperties")
		c.open[n] = true
		c.notes = append(c.notes, fmt.Sprintf("patternProperties %q is not checked: RE2 does not support it", m.Name))
	}
}
