package discover

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestConditions(t *testing.T) {
	about := json.RawMessage(`{"channel":"slack","sandboxed":true,"n":3,"team":{"name":"x","a.b":1},"x.y":"dot"}`)
	for declared, want := range map[string]string{ // "" means that the tool is enabled
		`{}`:                                      "",
		`{"channels":[]}`:                         "",
		`{"channels":["slack","cli"]}`:            "",
		`{"channels":["cli"]}`:                    "it is for channel cli, and this is slack",
		`{"when":{}}`:                             "",
		`{"when":null,"channels":null}`:           "",
		`{"when":{"sandboxed":true}}`:             "",
		`{"when":{"sandboxed":false}}`:            "its condition on sandboxed is not met: expected false, got true",
		`{"when":{"sandboxed":"true"}}`:           "its condition on sandboxed is not met",
		`{"when":{"n":3,"team.name":"x"}}`:        "",
		`{"when":{"team.a.b":1,"x.y":"dot"}}`:     "",
		`{"when":{"n":[1,2]}}`:                    "expected [1,2], got 3",
		`{"when":{"n":[1,3]}}`:                    "",
		`{"when":{"agentId":"a"}}`:                `expected "a", got null`,
		`{"when":{"agentId":null}}`:               "",
		`{"when":".sandboxed and .n > 2"}`:        "",
		`{"when":".sandboxed | not"}`:             "is not met",
		`{"when":"empty"}`:                        "is not met",
		`{"when":".n.x"}`:                         "failed",
		`{"when":"1, 2"}`:                         "more than one value",
		`{"when":"env.HOME // \"\" | . != \"\""}`: "is not met",
		`{"when":"$ENV.PATH != null"}`:            "is not met",
	} {
		o, ok := readObject(json.RawMessage(declared))
		if !ok {
			t.Fatal(declared)
		}
		c, err := readCondition(o, nil)
		if err != nil {
			t.Errorf("%s: %v", declared, err)
			continue
		}
		for range 2 { // jq must not modify the context for the second evaluation
			got := c.unmet(t.Context(), about)
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", declared, got, want)
			}
		}
	}
	if got := (condition{channels: []string{"a"}}).unmet(t.Context(), json.RawMessage("{}")); !strings.Contains(got, "no channel (--channel)") {
		t.Errorf("without a channel: %q", got)
	}
	if got := (condition{channels: []string{"a"}}).unmet(t.Context(), json.RawMessage("{")); got == "" {
		t.Error("an invalid context meets every condition")
	}
}

func TestPluginFilters(t *testing.T) {
	tool := &registry.Tool{Definition: registry.Definition{Name: "t", Plugin: "acme"}, Declared: "/p/plugin.yaml", Unmet: "it is for channel x"}
	off := DisabledFilter([]registry.Entry{{Value: "ac*", Setting: "s.yaml:3"}})
	if h := off(tool); h == nil || h.Setting != "s.yaml:3" || !strings.Contains(h.Reason, "acme") {
		t.Errorf("disabled: %+v", h)
	}
	if h := off(&registry.Tool{Definition: registry.Definition{Name: "acme"}}); h != nil {
		t.Errorf("a tool that is not from a plugin: %+v", h)
	}
	if h := ConditionFilter()(tool); h == nil || h.Reason != "it is for channel x" || h.Setting != "/p/plugin.yaml" {
		t.Errorf("condition: %+v", h)
	}
	if h := ConditionFilter()(&registry.Tool{}); h != nil {
		t.Errorf("no condition: %+v", h)
	}
}
