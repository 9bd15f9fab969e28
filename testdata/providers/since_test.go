package providers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// TestSince has Anthropic's SDK read the message about tools that came and went.
func TestSince(t *testing.T) {
	settings := filepath.Join(shared.dir, "kinds.json")
	before := filepath.Join(t.TempDir(), "before.json")
	if err := os.WriteFile(before, toolreg(t, settings, "", "schema", "add", "fail", "--format", "anthropic"), 0o600); err != nil {
		t.Fatal(err)
	}
	message := toolreg(t, settings, "", "schema", "add", "echo", "--format", "anthropic", "--since", before)
	if err := decode(message, &anthropic.BetaMessageParam{}); err != nil {
		t.Errorf("%v\n%s", err, message)
	}
	for _, want := range []string{`"tool_removal","tool":{"type":"tool_reference","name":"fail"}`, `"tool_addition","tool":{"type":"tool_definition","definition":{"name":"echo"`} {
		if !strings.Contains(string(message), want) {
			t.Errorf("no %s in %s", want, message)
		}
	}
}
