// Package provider implements the formats of model providers in both directions: it
// declares tools to a model, and answers the calls that the model makes. The file
// named after a provider has both.
//
// Declarations: [Lookup] finds a format, [Format.Encode] writes the declarations of
// a list of definitions, and [Names] maps declared names back to names in the
// registry; package restore adapts the params of calls to the tool's own schema. The
// key order and numbers of a schema are kept, and a schema that needs no change is
// unchanged except for white space. The same definitions always produce the same
// bytes, on which prompt caches depend.
// Untrusted text is escaped only as JSON requires; callers that show it to a person
// must escape control and invisible characters.
//
// Calls: [LookupCallFormat] finds a format, [Format.Decode] converts a response to
// a [Turn] of calls, and Turn.Reply converts the answers to the messages to append
// to the conversation, with matching ids. The caller runs the calls. Responses are
// untrusted. A response in another format is an error. A call that cannot be run,
// such as one that was cut off, has a Fault, so that it is answered too, as
// providers require.
package provider

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// Format is a provider's format of declarations and, for most providers, of calls
// and answers. Use [Formats] or [Lookup] to get one; the zero value encodes
// nothing.
type Format struct {
	// Name is the value of --format.
	Name string
	// Summary is one line for a help text.
	Summary string
	// Text is set if the output is text for a model or a compiler, not JSON.
	Text bool

	rule    nameRule
	layout  layout                // of the output; a JSON list if it is empty
	request layout                // with Options.Request, if it differs
	strict  bool                  // Options.Strict applies to the format
	prepare func(*encoder, *tool) // adapts the schema to the format; may be nil
	refuse  func(*tool) error     // returns why the adapted tool cannot be declared; may be nil
	write   func(*encoder, *tool)
	after   func(*encoder, *tool) // writes further entries after the tool's; may be nil

	search     func(*encoder) // declares the provider's search tool for deferred tools; may be nil
	namespaces bool           // deferred tools are grouped by source

	expects string // a valid response, in words
	// decode finds the calls in a response, and checks how it ended. It is nil if the format has no
	// calls.
	decode func(*Turn, json.RawMessage) error
	media  mediaLimits // of the answers
	// callID is the member of a call with its id, which answers repeat; "" if the API can do without.
	callID string
	// join makes one response of the events of a stream. It is nil if there are no streams.
	join  func([]json.RawMessage) (any, error)
	reply func(*Turn, []Answer) []any // writes the messages that answer the calls
}

// Options are the options of an encoding. The zero value produces plain
// declarations.
type Options struct {
	// Request wraps the declarations so that the output is the value of the request
	// field for tools.
	Request bool
	// Strict produces OpenAI strict schemas in the formats openai and
	// openai-responses. Other formats are not affected, but get a diagnostic. A
	// schema that cannot be made strict is declared as not strict, with a diagnostic.
	Strict bool
	// Target is the server of a local model, one of [local.Targets], for which the formats openai
	// and openai-responses adapt the schemas. Other formats ignore it.
	Target string
	// GeminiParameters makes the format gemini declare every tool with
	// "parameters", including MCP tools, even if it cannot express the schema
	// completely.
	GeminiParameters bool
	// GeminiReference makes the format gemini produce the declarations of Gemini CLI
	// 0.1.15, byte for byte, even if the API rejects them.
	GeminiReference bool
	// Registered are the names of all tools of the registry, because the declared
	// names depend on all of them. Those of the definitions may be omitted.
	Registered []string
	// Defer says which tools are declared as deferred.
	Defer Deferral
}

// Deferral says which tools are declared as deferred, for a provider that finds
// them when a model searches. It has an effect only in formats for which
// [Format.Defers] is true. The zero value defers nothing.
type Deferral struct {
	// Tools are the registered names of the deferred tools.
	Tools map[string]bool
	// Namespaces are descriptions of the sources of deferred tools, by source. The
	// format openai-responses groups tools in namespaces: until it searches, a model
	// sees only the name and description of a namespace.
	Namespaces map[string]string
	// Search declares the provider's search tool.
	Search bool
	// Client, if not nil, declares this search instead, which the client answers
	// (openai-responses).
	Client *registry.Definition
}

// Output is a finished encoding.
type Output struct {
	// Data is the whole document: compact JSON without a trailing newline, or
	// text with one.
	Data []byte
	// Declarations lists the declarations in Data, in order.
	Declarations []Declaration
}

// Declaration is one tool within an [Output].
type Declaration struct {
	Tool string // registered name
	Name string // declared name
	// Deferred is set if the model does not see the tool until it searches.
	Deferred bool
	// Data is the part of Output.Data that declares this tool.
	Data []byte
}

// layout is the text around and between declarations.
type layout struct{ open, between, close, empty string }

// Defers reports whether the provider accepts deferred tools and finds them
// itself.
func (f Format) Defers() bool { return f.search != nil }

// Keeps reports whether the format declares a name unchanged, regardless of
// other tools.
func (f Format) Keeps(name string) bool { return name == "" || f.rule.fit(name) == name }

// repeated returns the name of a call in the form that the API accepts in later messages. Gemini
// matches answers to calls by name, so the names of its calls stay.
func (f Format) repeated(name string) string {
	if strings.HasPrefix(f.Name, "gemini") || f.Name == "mcp" {
		return name
	}
	return f.rule.fit(cmp.Or(name, "_"))
}

// encoder writes the declarations of one call of Encode.
type encoder struct {
	format *Format
	opts   Options
	parser jsonx.Parser
	fitter gemini.Fitter
	out    []byte
	diags  []registry.Diagnostic

	namespaces map[string]string // names by source
	namespace  string            // source of the open namespace

	strictTools int             // anthropic, bedrock: number of strict tools,
	grammar     rewrite.Grammar // and the size of their grammar
	cachePoints int             // anthropic, bedrock: number of cache points,
	shortCache  bool            // and whether one of them has a TTL of 5m
}

// tool is a definition while it is being declared.
type tool struct {
	def    *registry.Definition
	name   string       // declared name
	schema *jsonx.Value // input schema; its root is an object
	bare   bool         // the tool has no schema, or an empty one
	strict bool         // schema was made strict

	byParameters bool  // gemini: declared with the field parameters
	unfit        error // gemini: why the schema cannot be declared
}

// Turn is one response of a model. Turns are created by Decode.
type Turn struct {
	// Calls are the calls in the order of the response. It may be empty.
	Calls []Call

	message  json.RawMessage // see Message
	format   Format
	siblings bool // gemini: media are sent separately from the responses
	live     bool // gemini: the calls were in a message of the Live API
	camel    bool // openai, mistral: names of members were in camelCase
}

// density is the number of ASCII characters per token, and of tokens per other
// character.
type density struct{ ascii, other float64 }

// densityOf returns the density for a format. It was measured with the provider's
// tokenizer, or the most similar published one, on the declarations of the servers
// in testdata/servers. testdata/tokens has the counts and the program that measures
// them.
func densityOf(format string) density {
	switch format {
	case "openai", "openai-responses":
		return density{4.39, 0.59} // o200k_base
	case "gemini", "gemini-interactions":
		return density{4.20, 0.49} // Gemma 3
	case "mistral":
		return density{4.13, 0.78} // Tekken
	case "typescript":
		return density{3.67, 0.82} // Claude, as below
	}
	return density{3.85, 0.82} // Claude; also for formats without a provider, because it has the most tokens
}

// Tokens estimates the number of tokens of data for the format's provider from its
// number of characters. The error is about a tenth for a whole request. Text that
// the provider adds around declarations is not included.
func (f Format) Tokens(data []byte) int {
	other, wide := 0, 0 // characters outside ASCII, and their bytes
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(data[i:])
		other, wide, i = other+1, wide+size, i+size
	}
	return f.estimate(len(data)-wide, other)
}

func (f Format) estimate(ascii, other int) int {
	d := densityOf(f.Name)
	return int(float64(ascii)/d.ascii + float64(other)*d.other + 0.5)
}

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
