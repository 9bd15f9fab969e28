package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/stack"
	"github.com/toolreg/toolreg/internal/text"
)

// validateLimit is the time limit of one compilation or validation. The library
// does not accept a context, so its goroutine is abandoned; a process that
// makes one call ends soon after.
const validateLimit = 5 * time.Second

// validateSlice is how long a goroutine runs before others get their turn.
const validateSlice = 10 * time.Millisecond

// Validator checks values against one schema, as [schema.Settler] settles it. It is safe
// for concurrent use and compiles at most once, when first needed.
type Validator struct {
	raw    json.RawMessage
	output bool
	once   sync.Once

	compiled *jsonschema.Schema
	refs     *schema.Refs // of the schema as compiled
	notes    []string
	err      error
}

// NewValidator returns a Validator for an untrusted schema. An empty schema
// accepts everything.
func NewValidator(schema json.RawMessage) *Validator { return &Validator{raw: schema} }

// NewOutputValidator returns a Validator that checks results against a tool's output schema; nil if
// there is none.
func NewOutputValidator(schema json.RawMessage) *Validator {
	if len(schema) == 0 {
		return nil
	}
	return &Validator{raw: schema, output: true}
}

// Ran begins the error about a result that does not match the tool's output schema.
const Ran = "the call ran (do not repeat it), but "

// Judges reports whether results are checked against the output schema. A schema that cannot be
// used, or has references that lead nowhere, must not turn a successful call into an error.
func (v *Validator) Judges(ctx context.Context) bool {
	if v == nil {
		return false
	}
	_, err := v.Compile(ctx)
	return err == nil
}

// CheckResult turns a result whose structured content does not match the tool's output schema
// into a failed one. All received content is kept.
func (v *Validator) CheckResult(ctx context.Context, r Result) Result {
	if r.IsError || !v.Judges(ctx) {
		return r
	}
	problem := Ran + "its result has no structuredContent, although the tool declares an outputSchema"
	if jsonx.IsEmptyList(r.Structured) { // the schema is one of an object
		r.Structured = json.RawMessage("{}")
	}
	if r.Structured != nil {
		violations, err := v.Validate(ctx, r.Structured)
		if err != nil || len(violations) == 0 {
			return r
		}
		problem = Ran + "its structuredContent does not match the tool's outputSchema: " +
			Describe(violations)
	}
	r.IsError, r.ErrorCategory = true, ErrorExecution
	r.Content = append([]Content{TextContent(problem)}, r.Content...)
	r.Display = Display{}
	r.Summary = problem
	return r
}

// Compile compiles the schema and returns notes on what is not checked. An
// error means that the schema cannot be used at all.
func (v *Validator) Compile(ctx context.Context) (notes []string, err error) {
	v.once.Do(func() { v.err = v.compile(context.WithoutCancel(ctx)) }) // other callers wait for it too
	return v.notes, v.err
}

// Validate checks one JSON document and returns all violations, sorted by pointer
// and keyword. An error means that the check itself failed; the caller must treat
// the document as invalid.
func (v *Validator) Validate(ctx context.Context, doc json.RawMessage) ([]Violation, error) {
	if _, err := v.Compile(ctx); err != nil {
		return nil, err
	}
	if err := jsonx.Check(doc, jsonx.Options{Number: numberFault}); err != nil {
		// The library cannot compute with such numbers.
		return nil, fmt.Errorf("reading the value to check: %w", err)
	}
	value, err := jsonx.Decode(doc)
	if err != nil {
		return nil, fmt.Errorf("reading the value to check: %w", err)
	}
	var failed error
	if err := withTimeLimit(ctx, validateLimit,
		func() error { failed = v.compiled.Validate(value); return nil }); err != nil {
		return nil, fmt.Errorf("checking against the schema: %w", err)
	}
	if failed == nil {
		return nil, nil
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](failed)
	if !ok {
		return nil, fmt.Errorf("checking against the schema: %w", failed)
	}
	return v.violations(ve, doc)
}

// Check checks params against the input schema of a tool. Violations are returned as
// *ArgsError. Any other error means that the schema cannot be used; it wraps
// [ErrSourceFailed], because only the source can fix it.
func (v *Validator) Check(ctx context.Context, tool string, params json.RawMessage) error {
	violations, err := v.Validate(ctx, params)
	if err != nil {
		return fmt.Errorf("%w: the input schema of %s cannot be used: %w", ErrSourceFailed, tool, err)
	}
	if len(violations) > 0 {
		return &ArgsError{Tool: tool, Violations: violations}
	}
	return nil
}

func (v *Validator) compile(ctx context.Context) error {
	raw := v.raw
	if len(raw) == 0 {
		raw = json.RawMessage("true")
	}
	settle := settleSchema
	if v.output {
		settle = settleOutput
	}
	settled, err := settle(newSettler(), raw)
	if err != nil {
		return err
	}
	c := checkable{notes: settled.Open, open: map[*jsonx.Value]bool{}}
	c.walk(settled.Tree, schema.Schemas)
	schema.Loosen(settled.Tree, c.open)
	slices.Sort(c.notes)
	v.refs, v.notes = schema.NewRefs(settled.Tree), c.notes
	text := settled.Tree.AppendTo(nil)
	var compiled *jsonschema.Schema // not v.compiled, because an abandoned goroutine may still write it
	if err := withTimeLimit(ctx, validateLimit,
		func() (err error) { compiled, err = compileSchema(text); return err }); err != nil {
		return schemaError(err)
	}
	v.compiled = compiled
	return nil
}

// schemaURL names the schema inside the compiler; it is never opened.
const schemaURL = "mem:///schema"

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	// The library's own loader opens files. Nothing outside the schema may be
	// read.
	c.LoadURL = func(u string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("references outside the schema are not followed: %q", u)
	}
	if err := c.AddResource(schemaURL, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

func schemaError(err error) error {
	se, ok := errors.AsType[*jsonschema.SchemaError](err)
	if !ok || se.Err == nil {
		return libraryError(err)
	}
	if ve, ok := errors.AsType[*jsonschema.ValidationError](se.Err); ok {
		leaves := leavesOf(ve, func(e *jsonschema.ValidationError) []*jsonschema.ValidationError { return e.Causes })
		return fmt.Errorf("at %q: %s", pointerOf(leaves[0].InstanceLocation), leaves[0].Message)
	}
	return libraryError(se.Err)
}

// libraryError removes the library's prefix and its internal URL from an error.
func libraryError(err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "jsonschema: "), schemaURL, "")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// withTimeLimit calls f with a time limit and converts its panics to errors. Time in which f
// waits because the process has more work than processors does not count: before each slice
// is counted, all goroutines that wait for a processor have had a turn.
func withTimeLimit(ctx context.Context, limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() {
		stack.ReserveMore()
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("panic in the schema library: %v", p)
			}
		}()
		done <- f()
	}()
	for range limit / validateSlice {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(validateSlice):
			runtime.Gosched()
		}
	}
	return fmt.Errorf("took longer than %s", limit)
}

func (v *Validator) violations(e *jsonschema.ValidationError, doc json.RawMessage) ([]Violation, error) {
	value, err := jsonx.Parse(doc, jsonx.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the value to check: %w", err)
	}
	places := schema.NewRefs(value) // a JSON pointer finds a value in the same way
	var out []Violation
	for _, leaf := range leavesOf(e, alternatives{v.refs}.causes) {
		out = append(out, v.violation(leaf, places)...)
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return cmp.Compare(a.Pointer, b.Pointer) })
	seen := make(map[Violation]bool, len(out))
	return slices.DeleteFunc(out, func(found Violation) bool {
		found.Expected = "" // alternatives may say the same, and expect different things
		was := seen[found]
		seen[found] = true
		return was
	}), nil
}

func (v *Validator) violation(leaf *jsonschema.ValidationError, places *schema.Refs) []Violation {
	if whole, ok := (alternatives{v.refs}).whole(leaf); ok {
		return []Violation{whole}
	}
	base := Violation{Pointer: text.Clip(pointerOf(leaf.InstanceLocation), maxPointer),
		Message: text.Clip(leaf.Message, maxMessage), Keyword: keywordOf(leaf)}
	_, fragment, _ := strings.Cut(leaf.AbsoluteKeywordLocation, "#")
	rule := v.refs.Lookup("#" + fragment)
	if rule == nil {
		if base.Keyword == "minContains" { // by default
			base.Message = "at least one item must match the schema of contains"
		}
		return []Violation{base}
	}
	value := places.Lookup("#" + leaf.InstanceLocation)
	switch {
	case value.Is(jsonx.Object) && base.Keyword == "required" && rule.Is(jsonx.Array):
		return missingViolations(base, rule, value)
	case value.Is(jsonx.Object) && base.Keyword == "additionalProperties":
		return unknownViolations(base, leaf.Message,
			v.refs.Lookup("#"+strings.TrimSuffix(fragment, "/additionalProperties")), value)
	}
	base.Message = text.Clip(cmp.Or(messageOf(base.Keyword, rule, value), base.Message), maxMessage)
	base.Expected = describe(rule)
	return []Violation{base}
}

// messageOf returns a message with values as JSON, or "" if the library's message has no values: it
// writes them as Go does (<nil>, 1e+06).
func messageOf(keyword string, rule, value *jsonx.Value) string {
	bound := map[string]string{"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}[keyword]
	switch {
	case bound != "" && value.Is(jsonx.Number):
		return "must be " + bound + " " + describe(rule) + " but found " + value.Token
	case keyword == "multipleOf" && value.Is(jsonx.Number):
		return value.Token + " is not a multiple of " + describe(rule)
	case keyword == "const":
		return valueMustBe([]*jsonx.Value{rule})
	case keyword == "enum" && rule.Is(jsonx.Array):
		return valueMustBe(rule.Items)
	case keyword == "pattern" && rule.Is(jsonx.String): // the library's has each backslash twice
		return "does not match pattern '" + rule.Text() + "'"
	case keyword == "minContains":
		return "at least " + describe(rule) + " items must match the schema of contains"
	case keyword == "maxContains":
		return "at most " + describe(rule) + " items may match the schema of contains"
	case keyword == "not":
		return "the schema forbids such a value"
	}
	return ""
}

// missingViolations returns one violation for each missing required property.
func missingViolations(base Violation, required, object *jsonx.Value) []Violation {
	given := make(map[string]bool, len(object.Members))
	for _, m := range object.Members {
		given[m.Name] = true
	}
	var out []Violation
	for _, r := range required.Items {
		if given[r.Text()] {
			continue
		}
		v := base
		v.Message = fmt.Sprintf("missing property %q", r.Text())
		out = append(out, v)
	}
	return out
}

// unknownViolations returns one violation for each property that the schema does not
// have.
func unknownViolations(base Violation, message string, parent, object *jsonx.Value) []Violation {
	var known []string
	for _, m := range parent.Get("properties").Fields() {
		known = append(known, m.Name)
	}
	slices.Sort(known)
	var out []Violation
	for _, m := range object.Members {
		if _, ok := slices.BinarySearch(known, m.Name); ok || !strings.Contains(message, "'"+m.Name+"'") {
			continue
		}
		v := base
		v.Pointer = text.Clip(v.Pointer+"/"+jsonx.EscapeToken(m.Name), maxPointer)
		v.Message = "unknown property " + text.Quote(m.Name)
		if near := Near(m.Name, known); len(near) > 0 {
			v.Message += fmt.Sprintf(", did you mean %q?", near[0])
		}
		if len(known) > 0 {
			v.Expected = "one of " + strings.Join(known, ", ")
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return []Violation{base}
	}
	return out
}
