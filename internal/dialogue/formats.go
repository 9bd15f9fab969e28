package dialogue

import (
	"fmt"
	"strings"
)

// Formats returns all formats. The caller owns the slice.
func Formats() []Format {
	return []Format{
		{"openai", decodeOpenAI, replyOpenAI},
		{"openai-responses", decodeResponses, replyResponses},
		{"anthropic", decodeAnthropic, replyAnthropic},
		{"bedrock", decodeBedrock, replyBedrock},
		{"mistral", decodeMistral, replyMistral},
		{"gemini", decodeGemini, replyGemini},
		{"mcp", decodeMCP, replyMCP},
	}
}

// Lookup returns the format with a name.
func Lookup(name string) (Format, error) {
	names := make([]string, 0, 7)
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("unknown format %q for a model's calls; use one of %s", name, strings.Join(names, ", "))
}
