package declare

import (
	"github.com/toolreg/toolreg/internal/declare/gemini"
	"github.com/toolreg/toolreg/internal/declare/rewrite"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Format is one shape of declarations. Formats come from [Formats] or
// [Lookup]; the zero value encodes nothing.
type Format struct {
	// Name is what --format takes.
	Name string
	// Summary is one line for a help text.
	Summary string
	// Text is set where the output is text for a model or a compiler, not JSON.
	Text bool

	rule    nameRule
	layout  func(Options) layout
	prepare func(*encoder, *tool) // fits the schema to the format
	refuse  func(*tool) error     // why the fitted tool cannot be declared; nil: it always can
	write   func(*encoder, *tool)
	behind  func(*encoder, *tool) // writes further entries behind the tool's; nil: there are none

	search     func(*encoder) // declares the provider's tool that finds deferred tools; nil: it has none
	namespaces bool           // deferred tools are grouped by source
}

// Options tune an encoding. The zero value gives plain declarations.
type Options struct {
	// Request wraps the declarations to what the provider's API takes in its
	// request field for tools.
	Request bool
	// Strict makes OpenAI strict schemas (formats openai and openai-responses;
	// the others are declared as usual, with a diagnostic). A schema that
	// cannot be made strict is declared as not strict, with a diagnostic.
	Strict bool
	// GeminiParameters makes format gemini declare every tool by "parameters",
	// MCP tools too, whatever that cannot say.
	GeminiParameters bool
	// GeminiReference makes format gemini declare what the Gemini CLI 0.1.15
	// does, byte for byte, also where the API refuses it.
	GeminiReference bool
	// Registered are the names of all tools of the registry: what a tool is
	// declared as depends on them too. The definitions' own may be left out.
	Registered []string
	// Defer says which tools are declared as deferred.
	Defer Deferral
}

// Output is a finished encoding.
type Output struct {
	// Data is the whole document: compact JSON without a newline behind it, or
	// text that ends in one.
	Data []byte
	// Declarations lists what Data holds, in its order.
	Declarations []Declaration
}

// Declaration is one tool within an [Output].
type Declaration struct {
	Tool string // registered name
	Name string // name as declared
	// Deferred is set where the model does not see the tool before it searches.
	Deferred bool
	// Data is the part of Output.Data that declares this tool.
	Data []byte
}

// layout is what stands around and between declarations.
type layout struct{ open, between, close, empty string }

// list is the layout of formats whose declarations are a plain JSON list.
func list(Options) layout { return layout{open: "[", between: ",", close: "]", empty: "[]"} }

// encoder writes the declarations of one call of Encode.
type encoder struct {
	format *Format
	opts   Options
	parser jsonx.Parser
	fitter gemini.Fitter
	out    []byte
	diags  []registry.Diagnostic

	namespaces map[string]string // names, by source
	namespace  string            // source of the one that is open

	strictTools int             // anthropic, bedrock: how many are declared as strict,
	grammar     rewrite.Grammar // and what they cost
	cachePoints int             // anthropic, bedrock: how many are declared,
	shortCache  bool            // and whether one of them is of 5m
}

// tool is one definition on its way to a declaration.
type tool struct {
	def    *registry.Definition
	name   string       // as declared
	schema *jsonx.Value // input schema; its root is an object
	bare   bool         // the source gave no schema, or an empty one
	strict bool         // schema was made strict

	byParameters bool  // gemini: declared by the field parameters
	unfit        error // gemini: why the schema cannot be declared
}
