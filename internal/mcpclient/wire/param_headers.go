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
	root, err := jsonx.Parse(inputSchema, jsonx.Options{})
	if err != nil {
		return err
	}
	return headerCheck{}.schema(root, true, 0)
}

// headerCheck checks one input schema. It has the header names so far, in lower case.
type headerCheck map[string]bool

// schema checks a schema; reachable says that only "properties" lead to it from
// the root, whose depth is 0.
func (m headerCheck) schema(s *jsonx.Value, reachable bool, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("its inputSchema uses %s and is nested deeper than %d levels", headerKeyword, maxSchemaDepth)
	}
	if keyword := s.Get(headerKeyword); keyword != nil {
		if err := m.header(keyword, s.Get("type"), reachable && depth > 0); err != nil {
			return err
		}
	}
	below := map[*jsonx.Value]bool{} // the properties, if they are reachable
	if properties := s.Get("properties"); properties != nil && reachable {
		for _, property := range properties.Members {
			below[property.Value] = true
		}
	}
	for sub := range schema.Within(s) {
		if err := m.schema(sub, below[sub], depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (m headerCheck) header(value, kind *jsonx.Value, reachable bool) error {
	name := value.Text()
	switch {
	case name == "":
		return errors.New("its " + headerKeyword + " is not a non-empty string")
	case !reachable:
		return fmt.Errorf("its %s %s is not reachable through properties alone", headerKeyword, text.Quote(name))
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("its %s %s is not a valid HTTP header name", headerKeyword, text.Quote(name))
	case m[strings.ToLower(name)]:
		return fmt.Errorf("its %s %s occurs twice", headerKeyword, text.Quote(name))
	}
	m[strings.ToLower(name)] = true
	if !slices.Contains([]string{"string", "integer", "boolean"}, kind.Text()) {
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

// MatchParamHeaders returns an error unless the headers of a call repeat its params as the input
// schema requires. A schema that [CheckParamHeaders] rejects requires nothing.
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

// hasText reports whether a header is equal to a param. A number can be written in several ways.
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

// Values that a header cannot carry are encoded between these.
const encodedBefore, encodedAfter = "=?base64?", "?="

// encodeHeader encodes a value that a header cannot carry, or that looks like an encoded one.
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
