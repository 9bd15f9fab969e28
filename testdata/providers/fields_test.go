package providers_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	openaishared "github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
)

// TestFieldsAreDecided holds the table of fields in docs/providers.md against the
// types of the SDKs: a field of a tool that is in one of them alone is one that
// nobody decided about, or one that is no more.
func TestFieldsAreDecided(t *testing.T) {
	fields := map[string][]string{
		"openai":           slices.Concat(fieldsOf(openai.ChatCompletionFunctionToolParam{}), fieldsOf(openaishared.FunctionDefinitionParam{})),
		"openai-responses": fieldsOf(responses.FunctionToolParam{}),
		"anthropic":        fieldsOf(anthropic.ToolParam{}),
		"gemini":           fieldsOf(genai.FunctionDeclaration{}),

		"gemini-interactions": fieldsOf(interactions.Function{}),
		"bedrock":             append(membersOf(schemas.ToolSpecification), "cachePoint"), // an entry of its own
		"mistral":             slices.Concat(fieldsOf(mistralTool{}), fieldsOf(mistralTool{}.Function)),
		"mcp":                 append(fieldsOf(mcp.Tool{}), "execution"), // of the protocol, not in the SDK's type
	}
	table := readTable(t, "### Fields of a tool", 0)
	for format, has := range fields {
		column := slices.Index(table[0], "`"+format+"`")
		if column < 0 {
			t.Fatalf("the table has no column %s", format)
		}
		var decided []string
		for _, row := range table[1:] {
			decided = append(decided, codeWords(row[column])...)
		}
		compareKinds(t, format+": field", has, decided)
	}
	inside := fieldsOf(responses.NamespaceToolToolFunctionParam{}) // a function of a namespace is one like any other
	compareKinds(t, "openai-responses: field in a namespace", inside, fields["openai-responses"])
}

// TestToolKindsAreDecided does the same with the kinds of tools of a request.
func TestToolKindsAreDecided(t *testing.T) {
	kinds := map[string][]string{
		"openai":           variants(openai.ChatCompletionToolUnionParam{}),
		"openai-responses": variants(responses.ToolUnionParam{}),
		"anthropic":        variants(anthropic.ToolUnionParam{}),
		"gemini":           fieldsOf(genai.Tool{}),

		"gemini-interactions": members(interactions.Tool{}),
		"bedrock":             membersOf(schemas.Tool),

		// ChatCompletionRequest.tools in Mistral's OpenAPI document.
		"mistral": {"function", "web_search", "web_search_premium", "code_interpreter", "image_generation", "document_library", "connector"},
	}
	for _, row := range readTable(t, "### Fields of a tool", 1)[1:] {
		format := codeWords(row[0])[0]
		compareKinds(t, format+": kind of tool", kinds[format], codeWords(strings.Join(row[1:], " ")))
		delete(kinds, format)
	}
	if len(kinds) > 0 {
		t.Errorf("not in the table: %v", slices.Collect(maps.Keys(kinds)))
	}
}

// TestCallKindsAreDecided does the same with what a response may hold.
func TestCallKindsAreDecided(t *testing.T) {
	kinds := map[string][]string{
		"openai":           answers(openai.ChatCompletionMessageToolCallUnion{}),
		"openai-responses": answers(responses.ResponseOutputItemUnion{}),
		"anthropic":        answers(anthropic.ContentBlockUnion{}),
		"gemini":           append(fieldsOf(genai.Part{}), "partialArgs"), // of a functionCall

		"gemini-interactions": members(interactions.Step{}),
		"bedrock":             membersOf(schemas.ContentBlock),
	}
	for _, row := range readTable(t, "### Kinds of calls", 0)[1:] {
		format := codeWords(row[0])[0]
		decided := slices.DeleteFunc(codeWords(strings.Join(row[1:], " ")), func(word string) bool {
			return word == "call_id" || word == "_call" || word == "server_tool_use" && format == "bedrock" // not kinds
		})
		compareKinds(t, format+": kind of call", kinds[format], decided)
		delete(kinds, format)
	}
	if len(kinds) > 0 {
		t.Errorf("not in the table: %v", slices.Collect(maps.Keys(kinds)))
	}
}

// compareKinds tells what one side has alone.
func compareKinds(t *testing.T, what string, sdk, documented []string) {
	t.Helper()
	for _, name := range sdk {
		if !slices.Contains(documented, name) {
			t.Errorf("%s %q is not in docs/providers.md: decide whether it is supported", what, name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(sdk, name) {
			t.Errorf("%s %q of docs/providers.md is not in the SDK", what, name)
		}
	}
}

// fieldsOf returns the JSON names of a struct's fields.
func fieldsOf(v any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func membersOf(s *smithy.Schema) []string { return slices.Collect(maps.Keys(s.Members())) }

// dated is the end of the name of a kind that has versions.
var dated = regexp.MustCompile(`_20\d{6}$`)

// variants returns the kinds of a union of the SDKs of OpenAI and Anthropic:
// what the type says of itself, its name, or that of the union's field.
func variants(union any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(union)) {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		name := snake(strings.TrimPrefix(f.Name, "Of"))
		for _, key := range []string{"Name", "Type"} {
			if own, ok := f.Type.Elem().FieldByName(key); ok && own.Tag.Get("default") != "" {
				name = own.Tag.Get("default")
			}
		}
		out = append(out, dated.ReplaceAllString(name, ""))
	}
	return out
}

// members returns the kinds of a union of the SDK of Gemini's interactions.
func members(union any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(union)) {
		if f.Tag.Get("union") == "member" {
			kind, _ := f.Type.Elem().FieldByName("type_")
			out = append(out, kind.Tag.Get("const"))
		}
	}
	return out
}

// answers returns the kinds of a union in responses, whose methods are called
// after them.
func answers(union any) []string {
	var out []string
	typ := reflect.TypeOf(union)
	for i := range typ.NumMethod() {
		if kind, ok := strings.CutPrefix(typ.Method(i).Name, "As"); ok && kind != "Any" {
			out = append(out, snake(kind))
		}
	}
	return out
}

var capital = regexp.MustCompile(`[A-Z]`)

func snake(name string) string {
	return strings.TrimPrefix(strings.ToLower(capital.ReplaceAllString(name, "_$0")), "_")
}

var code = regexp.MustCompile("`([^`]+)`")

// codeWords returns what a cell has as code.
func codeWords(cell string) []string {
	var out []string
	for _, match := range code.FindAllStringSubmatch(cell, -1) {
		out = append(out, match[1])
	}
	return out
}

// readTable returns the cells of the nth table below a heading of
// docs/providers.md, the first row being its head.
func readTable(t *testing.T, heading string, n int) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/providers.md has no %q", heading)
	}
	var tables [][][]string
	inside := false
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			break
		}
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		if !inside {
			tables = append(tables, nil)
		}
		inside = true
		if !strings.HasPrefix(line, "|---") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			tables[len(tables)-1] = append(tables[len(tables)-1], cells)
		}
	}
	if n >= len(tables) {
		t.Fatalf("%q has %d tables", heading, len(tables))
	}
	return tables[n]
}

// TestFieldsAreWritten sets every key of the settings and wants each field of the
// table in the declaration, which the SDK reads; and none of them where no key is
// set.
func TestFieldsAreWritten(t *testing.T) {
	const keys = `{"deferLoading":false,"strict":true,"inputExamples":[{"a":1,"b":2}],"cacheControl":{"ttl":"1h"},"allowedCallers":["direct"],` +
		`"outputSchema":true,"eagerInputStreaming":true,"async":true,"behavior":"NON_BLOCKING"}`
	plain := filepath.Join(shared.dir, "kinds.json")
	data, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(t.TempDir(), "set.json")
	if err := os.WriteFile(set, []byte(strings.TrimSuffix(string(data), "}")+`,"overrides":{"add":`+keys+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := map[string]func(json.RawMessage) error{
		"openai":           func(raw json.RawMessage) error { return decode(raw, &openai.ChatCompletionToolUnionParam{}) },
		"openai-responses": func(raw json.RawMessage) error { return decode(raw, &responses.ToolUnionParam{}) },
		"anthropic":        func(raw json.RawMessage) error { return decode(raw, &anthropic.ToolUnionParam{}) },
		"gemini":           func(raw json.RawMessage) error { return decodeStrictly(raw, &genai.FunctionDeclaration{}) },

		"gemini-interactions": func(raw json.RawMessage) error { return decode(raw, &interactions.Tool{}) },
		"mistral":             func(raw json.RawMessage) error { return decodeStrictly(raw, &mistralTool{}) },
	}
	table := readTable(t, "### Fields of a tool", 0)
	for column, head := range table[0][1:] {
		format := codeWords(head)[0]
		t.Run(format, func(t *testing.T) {
			with := toolreg(t, set, "", "schema", "add", "--format", format)
			without := toolreg(t, plain, "", "schema", "add", "--format", format)
			always := append(codeWords(table[1][column+1]), codeWords(table[2][column+1])...)
			for _, row := range table[3 : len(table)-1] {
				for _, field := range codeWords(row[column+1]) {
					if !strings.Contains(string(with), `"`+field+`":`) {
						t.Errorf("%s does not give %s: %s", row[0], field, with)
					}
					if !slices.Contains(always, field) && strings.Contains(string(without), `"`+field+`":`) {
						t.Errorf("%s is declared though nobody asked for it: %s", field, without)
					}
				}
			}
			var list []json.RawMessage
			switch format {
			case "mcp":
				return
			case "bedrock":
				if err := decodeShape([]byte(`{"tools":`+string(with)+`}`), &types.ToolConfiguration{}); err != nil {
					t.Error(err)
				}
				return
			}
			if err := json.Unmarshal(with, &list); err != nil {
				t.Fatal(err)
			}
			if err := reads[format](list[0]); err != nil {
				t.Error(err)
			}
		})
	}
}
