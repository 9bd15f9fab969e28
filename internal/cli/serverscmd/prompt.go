package serverscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

func newPromptCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "prompt NAME PROMPT [k=v…]",
		Short: "Have a server fill in one of its prompts",
		Long: `Have an MCP server fill in one of its prompts and print the messages. Arguments are
text: k=v, k=@FILE for the content of a file, k=@- for stdin; k=@@x is the text @x.
toolreg servers NAME --prompts lists the prompts with their arguments.

The text of a prompt comes from the server. Read it before you give it to a model.

Rules about prompts (policy.rules) apply.

Exit codes: 0, 2, 3 (no such server or prompt), 4 (invalid arguments), 5 (denied),
6 (it needs an answer and nobody can be asked), 7 (the server refused), 8 (the server
failed), 124 (time limit).`,
		Example: `  toolreg servers prompt review code_review code=@main.go
  toolreg servers prompt review code_review code=x --jq '.messages[0].content.text'`,
		Args: cli.ArgsBetween(2, -1, "the NAME of a server, a PROMPT, and arguments k=v"),
		ValidArgsFunction: complete.Args(e.Complete().Servers(),
			completeOffers(e, mcpclient.OfferPrompts), completePromptArguments(e)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runPrompt(cmd.Context(), e, argv[0], argv[1], argv[2:])
		},
	}
}

// promptDocument is the JSON of servers prompt.
type promptDocument struct {
	Server      string          `json:"server"`
	Prompt      string          `json:"prompt"`
	Description string          `json:"description,omitempty"`
	Messages    json.RawMessage `json:"messages"` // as the server sent them
}

func runPrompt(ctx context.Context, e *cli.Env, server, name string, argv []string) error {
	var filled mcpclient.Filled
	use := offerUse{
		what: "prompt " + name, method: "prompts/get",
		offer:  engine.Offer{Server: server, Prompt: name, Name: server + "__" + name},
		params: map[string]any{"name": name, "arguments": argv},
	}
	err := atServer(ctx, e, use, func(ctx context.Context, s *mcpclient.Source, show func(registry.Progress)) error {
		prompts, diags, err := s.Prompts(ctx)
		if err != nil {
			return err
		}
		prompt, err := findPrompt(server, name, prompts, diags)
		if err != nil {
			return err
		}
		arguments, err := promptArguments(ctx, e.Config, prompt, argv)
		if err != nil {
			return err
		}
		filled, err = s.GetPrompt(ctx, name, arguments, show)
		return err
	})
	if err != nil {
		return err
	}
	if e.IO.JSON {
		return e.IO.PrintJSON(promptDocument{server, name, filled.Description, filled.Raw})
	}
	_, err = io.WriteString(e.IO.Results(), messagesText(e.IO, filled.Messages))
	return err
}

func findPrompt(server, name string, prompts []mcpclient.Prompt,
	diags []registry.Diagnostic) (mcpclient.Prompt, error) {
	names := make([]string, len(prompts))
	for i, p := range prompts {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	if len(prompts) == 0 && len(diags) > 0 && diags[0].Code == "not_offered" {
		return mcpclient.Prompt{}, &mcpclient.NotOfferedError{Server: server, What: "prompts"}
	}
	message := fmt.Sprintf("server %q has no prompt named %q (it has %d)", server, name, len(names))
	if near := registry.Near(name, names); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return mcpclient.Prompt{}, &registry.Failure{Text: message, Kind: registry.ErrNotFound,
		Help: "toolreg servers " + server + " --prompts lists them"}
}

// promptArguments encodes the arguments, which are all text, and checks that
// all required ones are present and no others.
func promptArguments(ctx context.Context, config *cli.Config,
	p mcpclient.Prompt, argv []string) (map[string]string, error) {
	properties, required := map[string]any{}, []string{}
	for _, arg := range p.Arguments {
		properties[arg.Name] = map[string]string{"type": "string"}
		if arg.Required {
			required = append(required, arg.Name)
		}
	}
	raw, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		return nil, err
	}
	params, err := args.Parse(argv, args.Options{Schema: raw, ReadFile: func(name string) ([]byte, error) {
		return config.ReadInput(ctx, name, "arguments", cli.MaxArgument)
	}})
	if err != nil {
		return nil, err
	}
	violations, err := registry.NewValidator(raw).Validate(ctx, params)
	if err != nil {
		return nil, err
	}
	if len(violations) > 0 {
		wrong := &registry.ArgsError{Tool: "prompt " + p.Name, Violations: violations}
		return nil, &registry.Failure{Text: wrong.Error(), Cause: wrong,
			Help: "see toolreg servers " + p.Server + " --prompts"}
	}
	out := map[string]string{}
	return out, json.Unmarshal(params, &out)
}

// messagesText formats each message under its role. In a pipe texts are
// unchanged; on a terminal they are indented, so that none can look like
// another message.
func messagesText(ios *cli.IO, messages []mcpclient.Message) string {
	var b strings.Builder
	for i, m := range messages {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "[%s]\n", ui.Line(m.Role))
		text := ui.EndLine(messageText(m.Content))
		if !ios.OutTTY {
			b.WriteString(text)
			continue
		}
		for line := range strings.Lines(ui.Visible(text)) {
			b.WriteString("  " + ui.EndLine(line))
		}
	}
	return b.String()
}

func messageText(c registry.Content) string {
	switch {
	case c.Type == registry.ContentText, c.Type == registry.ContentResource && c.Data == nil,
		c.Type == registry.ContentResourceLink:
		return cli.PartText(c)
	case c.URI != "":
		return fmt.Sprintf("[%s %s %s, %d bytes; --json has it]", c.Type, c.URI, c.MIMEType, len(c.Data))
	}
	return fmt.Sprintf("[%s %s, %d bytes; --json has it]", c.Type, c.MIMEType, len(c.Data))
}
