package declare

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// DefaultFormat is the format used where none is named.
const DefaultFormat = "gemini"

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
}

// layout is what stands around and between declarations.
type layout struct{ open, between, close, empty string }

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
	// Data is the part of Output.Data that declares this tool.
	Data []byte
}

// Formats returns every format, the default first. The slice is the caller's.
func Formats() []Format {
	return []Format{
		geminiFormat(), openai(), openaiResponses(), anthropic(), bedrock(), mistral(),
		mcp(), jsonSchema(), prompt(), typescriptFormat(),
	}
}

// Lookup finds a format by its name; "" means [DefaultFormat]. The error is an
// *UnknownFormatError.
func Lookup(name string) (Format, error) {
	if name == "" {
		name = DefaultFormat
	}
	names := make([]string, 0, 10)
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, &UnknownFormatError{Name: name, Near: registry.Near(name, names), Known: names}
}

// UnknownFormatError tells that there is no format of that name.
type UnknownFormatError struct {
	Name  string
	Near  []string // names that look like it, best first
	Known []string // all names
}

func (e *UnknownFormatError) Error() string {
	if len(e.Near) > 0 {
		return fmt.Sprintf("no declaration format %q; did you mean %s?", e.Name, strings.Join(e.Near, ", "))
	}
	return fmt.Sprintf("no declaration format %q; known are %s", e.Name, strings.Join(e.Known, ", "))
}
