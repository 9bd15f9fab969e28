//go:build unix

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model's stream is answered as a response is; binary frames come in base64.
func TestRPCAnswersStreams(t *testing.T) {
	_, command := inProject(t)
	h := startRPC(t, command("rpc"))
	for name, format := range map[string]string{"anthropic.sse": "anthropic", "gemini.json": "gemini", "bedrock.frames": "bedrock"} {
		data, err := os.ReadFile(filepath.Join("../../testdata/providers/streams", name))
		if err != nil {
			t.Fatal(err)
		}
		stream := string(data)
		if format == "bedrock" {
			stream = base64.StdEncoding.EncodeToString(data)
		}
		m := h.call("answer", map[string]any{"format": format, "stream": stream})
		if got := string(m.Result); m.Error != nil || !strings.Contains(got, `"tool":"add"`) || !strings.Contains(got, `"tool":"echo"`) || !strings.Contains(m.get("message"), "I add é") {
			t.Errorf("%s: %s %v", name, got, m.Error)
		}
		if m := h.call("answer", map[string]any{"format": format, "stream": stream[:len(stream)/2]}); m.Error == nil || m.Error.Data.Exit != 2 {
			t.Errorf("%s: half of it: %s %v", name, m.Result, m.Error)
		}
	}
	for _, params := range []map[string]any{{"format": "openai"}, {"format": "openai", "response": map[string]any{}, "stream": "data: {}"}} {
		if m := h.call("answer", params); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%v: %s %v", params, m.Result, m.Error)
		}
	}
}
