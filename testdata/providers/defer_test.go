package providers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// TestDeferred reads what --defer declares into the types of the SDKs whose
// providers find deferred tools themselves: every tool is there once.
func TestDeferred(t *testing.T) {
	for format, check := range map[string]func(json.RawMessage) (string, error){
		"anthropic":        checkAnthropicEntry,
		"openai-responses": checkResponsesEntry,
	} {
		for _, mode := range []string{"auto", "all"} {
			plain := declarations(t, format)
			names, deferred := newNames(t), 0
			for _, raw := range flat(t, declarations(t, format, "--defer", mode)) {
				var entry struct {
					Deferred bool `json:"defer_loading"`
				}
				if err := json.Unmarshal(raw, &entry); err != nil {
					t.Fatal(err)
				}
				if entry.Deferred {
					deferred++
				}
				name, err := check(raw)
				if err != nil {
					t.Errorf("%s, %s: %v", format, mode, err)
				}
				if name != "" {
					names.add(name)
				}
			}
			names.want(len(names.seen), len(plain))
			if deferred < len(plain)/2 || mode == "all" && deferred != len(plain) {
				t.Errorf("%s, %s: %d of %d tools are deferred", format, mode, deferred, len(plain))
			}
		}
	}
}

// checkAnthropicEntry checks a declaration; the search has no name of a tool.
func checkAnthropicEntry(raw json.RawMessage) (string, error) {
	if strings.Contains(string(raw), `"tool_search_tool_bm25_20251119"`) {
		return "", decode(raw, &anthropic.ToolUnionParam{})
	}
	return checkAnthropic(raw)
}

func checkResponsesEntry(raw json.RawMessage) (string, error) {
	if strings.HasPrefix(string(raw), `{"type":"tool_search"`) {
		return "", decode(raw, &responses.ToolUnionParam{})
	}
	name, _, err := checkResponses(raw, false)
	return name, err
}

// flat has the tools of namespaces instead of these, which are read into the
// SDK's type first.
func flat(t *testing.T, list []json.RawMessage) (out []json.RawMessage) {
	t.Helper()
	for _, raw := range list {
		var entry struct {
			Type, Name, Description string
			Tools                   []json.RawMessage
		}
		if err := json.Unmarshal(raw, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type != "namespace" {
			out = append(out, raw)
			continue
		}
		if err := decode(raw, &responses.ToolUnionParam{}); err != nil {
			t.Error(err)
		}
		if !dashed.MatchString(entry.Name) || entry.Description == "" {
			t.Errorf("the namespace %q: %q", entry.Name, entry.Description)
		}
		out = append(out, entry.Tools...)
	}
	return out
}

// TestClientSearch answers a search of the Responses API with declarations that
// the API's type for them takes.
func TestClientSearch(t *testing.T) {
	const call = `{"type":"tool_search_call","call_id":"t","execution":"client","arguments":{"query":"create an issue","limit":20}}`
	out := toolreg(t, shared.settings, call, "call", "--format", "openai-responses")
	if err := decode(out, &responses.ResponseInputItemUnionParam{}); err != nil {
		t.Error(err)
	}
	var answer struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	names := newNames(t)
	for _, raw := range flat(t, answer.Tools) {
		name, err := checkResponsesEntry(raw)
		if err != nil {
			t.Error(err)
		}
		names.add(name)
	}
	if len(names.seen) != 20 || !slices.ContainsFunc(answer.Tools, func(raw json.RawMessage) bool { return strings.Contains(string(raw), "create_issue") }) {
		t.Errorf("found %v", names.seen)
	}
}

// TestReaching holds the three tools against the rules of the providers that need
// them.
func TestReaching(t *testing.T) {
	for _, raw := range declarations(t, "openai", "--defer", "all") {
		if _, _, err := checkOpenAI(raw, false); err != nil {
			t.Error(err)
		}
	}
	for _, raw := range declarations(t, "mistral", "--defer", "all") {
		var tool mistralTool
		if err := decodeStrictly(raw, &tool); err != nil {
			t.Error(err)
		} else if err := tool.check(); err != nil {
			t.Error(err)
		}
	}
	for _, raw := range declarations(t, "gemini", "--defer", "all") {
		var f genai.FunctionDeclaration
		if err := decodeStrictly(raw, &f); err != nil {
			t.Error(err)
		} else if err := checkGemini(&f); err != nil {
			t.Error(err)
		}
	}
}
