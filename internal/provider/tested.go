package provider

// Tested lists the libraries with which declarations and answers were tested.
type Tested struct {
	AsOf string `json:"asOf"` // date of docs/providers.md
	SDKs []SDK  `json:"sdks"`
}

// SDK is a provider's own library, whose types can parse the output of toolreg.
type SDK struct {
	Module  string `json:"module"`
	Version string `json:"version"`
}

// TestedWith returns the SDKs that the tests in testdata/providers use. A test
// there compares this list with its go.mod and with docs/providers.md.
func TestedWith() Tested {
	return Tested{AsOf: "2026-11-29", SDKs: []SDK{
		{"github.com/anthropics/anthropic-sdk-go/v2", "v2.15.0"},
		{"github.com/aws/aws-sdk-go-v2/service/bedrockruntime", "v1.63.13"},
		{"github.com/modelcontextprotocol/go-sdk", "v1.8.0"},
		{"github.com/openai/openai-go/v3", "v3.99.0"},
		{"google.golang.org/genai", "v1.77.0"},
	}}
}
