package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// headerKeyword is the keyword of an input schema that names the HTTP header that
// repeats a param, for intermediaries that do not read bodies (revision
// 2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
const headerKeyword = "x-mcp-header"

// maxSchemaDepth limits the nesting of schemas that are searched for the keyword.
const maxSchemaDepth = 100

// NamesParamHeaders reports whether a schema may contain the keyword; it only
// searches the text.
func NamesParamHeaders(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte(`"`+headerKeyword+`"`))
}

// CheckParamHeaders returns an error if an input schema requires headers that
// are invalid. A client that speaks streamable HTTP must not offer a tool with
// such a schema: the server would refuse calls without the headers.
func CheckParamHeaders(inputSchema json.RawMessage) error {
	if !NamesParamHeaders(inputSchema) {
		return nil
	}
	m := headerCheck{seen: map[string]bool{}}
	return m.schema(inputSchema, true, 0)
}

// headerCheck is one walk over an input schema.
type headerCheck struct {
	seen map[string]bool // header names in lower case
}

// schema checks a schema; reachable says that only "properties" lead to it from
// the root, whose depth is 0.
func (m *headerCheck) schema(raw json.RawMessage, reachable bool, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("its inputSchema uses %s and is nested deeper than %d levels", headerKeyword, maxSchemaDepth)
	}
	for key, value := range jsonx.Members(raw) {
		var err error
		switch {
		case key == headerKeyword:
			err = m.header(value, jsonx.Get(raw, "type"), reachable && depth > 0)
		case schema.Under(key) == schema.Named:
			for _, sub := range jsonx.Members(value) {
				if err := m.schema(sub, reachable && key == "properties", depth+1); err != nil {
					return err
				}
			}
		case schema.Under(key) == schema.Schemas:
			list, ok := jsonx.Elements(value)
			if !ok {
				list = []json.RawMessage{value}
			}
			for _, sub := range list {
				if err := m.schema(sub, false, depth+1); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *headerCheck) header(value, kind json.RawMessage, reachable bool) error {
	name, ok := jsonx.Text(value)
	switch {
	case !ok || name == "":
		return errors.New("its " + headerKeyword + " is not a non-empty string")
	case !reachable:
		return fmt.Errorf("its %s %s is not reachable through properties alone", headerKeyword, text.Quote(name))
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("its %s %s is not a valid HTTP header name", headerKeyword, text.Quote(name))
	case m.seen[strings.ToLower(name)]:
		return fmt.Errorf("its %s %s occurs twice", headerKeyword, text.Quote(name))
	}
	m.seen[strings.ToLower(name)] = true
	if t, _ := jsonx.Text(kind); !slices.Contains([]string{"string", "integer", "boolean"}, t) {
		return fmt.Errorf("its %s %s belongs to a param that is not a string, integer or boolean",
			headerKeyword, text.Quote(name))
	}
	return nil
}

// ParamHeaders returns the headers for a call of a tool with an input schema that
// [CheckParamHeaders] accepts.
func ParamHeaders(inputSchema, params json.RawMessage) http.Header {
	out := http.Header{}
	eachHeaderParam(inputSchema, params, 0, func(header string, value json.RawMessage) {
		if s, ok := headerText(value); ok {
			out.Set(header, encodeHeader(s))
		}
	})
	return out
}

// MatchParamHeaders returns an error unless the headers of a call repeat its params as the input schema
// demands. A schema that [CheckParamHeaders] does not accept demands nothing.
func MatchParamHeaders(inputSchema, params json.RawMessage, headers http.Header) (err error) {
	if CheckParamHeaders(inputSchema) != nil {
		return nil
	}
	eachHeaderParam(inputSchema, params, 0, func(header string, value json.RawMessage) {
		got := headers.Get(header)
		switch absent := value == nil || jsonx.IsNull(value); {
		case absent && got != "":
			err = fmt.Errorf("header mismatch: unexpected %s header, because its param is absent or null", header)
		case !absent && got == "":
			err = fmt.Errorf("header mismatch: missing %s header", header)
		case !absent && !hasText(DecodeHeader(got), value):
			err = fmt.Errorf("header mismatch: %s header value %s does not match body value", header, text.Quote(got))
		}
	})
	return err
}

// hasText reports whether a header has the text of a param. A number can be written in several ways.
func hasText(header string, value json.RawMessage) bool {
	want, ok := headerText(value)
	if jsonx.KindOf(value) == jsonx.Number {
		a, err := strconv.ParseFloat(header, 64)
		b, _ := strconv.ParseFloat(want, 64)
		return ok && err == nil && a == b
	}
	return ok && header == want
}

// eachHeaderParam calls do with each param that a header repeats; value is nil if the param is absent.
func eachHeaderParam(schema, params json.RawMessage, depth int, do func(header string, value json.RawMessage)) {
	if depth > maxSchemaDepth || !NamesParamHeaders(schema) {
		return
	}
	for name, property := range jsonx.Members(jsonx.Get(schema, "properties")) {
		value := jsonx.Get(params, name)
		if header, ok := jsonx.Text(jsonx.Get(property, headerKeyword)); ok {
			do("Mcp-Param-"+header, value)
		}
		eachHeaderParam(property, value, depth+1, do)
	}
}

// headerText returns a param as a header value; ok is false if the param cannot
// be sent in a header.
func headerText(value json.RawMessage) (s string, ok bool) {
	const exact = 1<<53 - 1 // the integers that every JSON parser represents exactly
	switch jsonx.KindOf(value) {
	case jsonx.String:
		return jsonx.Text(value)
	case jsonx.True, jsonx.False:
		return string(value), true
	case jsonx.Number:
		n, err := strconv.ParseFloat(string(value), 64)
		return strconv.FormatFloat(n, 'f', 0, 64), err == nil && n == math.Trunc(n) && math.Abs(n) <= exact
	}
	return "", false
}

// A header cannot carry every value as it is: others are encoded between these.
const encodedBefore, encodedAfter = "=?base64?", "?="

// encodeHeader encodes a value that a header cannot carry as it is, or that looks like an
// encoded one.
func encodeHeader(s string) string {
	odd := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) >= 0
	if odd || strings.TrimSpace(s) != s || strings.HasPrefix(s, encodedBefore) && strings.HasSuffix(s, encodedAfter) {
		return encodedBefore + base64.StdEncoding.EncodeToString([]byte(s)) + encodedAfter
	}
	return s
}

// DecodeHeader returns the value of a header, which may be encoded.
func DecodeHeader(s string) string {
	if encoded, ok := strings.CutPrefix(s, encodedBefore); ok {
		encoded, whole := strings.CutSuffix(encoded, encodedAfter)
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil && whole {
			return string(decoded)
		}
	}
	return s
}
