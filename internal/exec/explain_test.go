package exec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// busy is the error of a source that knows what to do.
type busy struct{}

func (busy) Error() string  { return "server \"s\": 429" }
func (busy) Advice() string { return "Try again in 7s." }
func (busy) Unwrap() error  { return registry.ErrSourceFailed }

// refused is the error of a hook.
type refused struct{}

func (refused) Error() string    { return "denied by the hook at /home/me/settings.yaml:3" }
func (refused) ForModel() string { return "Not allowed: use staging." }
func (refused) Unwrap() error    { return registry.ErrDenied }

// A model learns what to do next, and nothing of settings and paths.
func TestExplain(t *testing.T) {
	var many registry.ArgsError
	for i := range 22 {
		many.Violations = append(many.Violations, registry.Violation{Pointer: fmt.Sprintf("/a/%d", i), Message: "is wrong"})
	}
	few := many
	few.Violations = few.Violations[:20]
	hidden := &registry.Hidden{Reason: "off", Setting: "/home/me/settings.yaml:3"}
	renamed := &registry.Hidden{Reason: "renamed", Setting: "/home/me/settings.yaml:3", Now: "new"}
	const goOn = "Do not repeat it; find another way"
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"params":            {registry.Invalid("t", "/x", "is wrong"), "Correct them and call again:\n- /x: is wrong"},
		"the whole":         {registry.Invalid("t", "", "is wrong"), "call again:\n- is wrong"},
		"twenty mistakes":   {&few, "- /a/19: is wrong"},
		"more mistakes":     {&many, "- /a/19: is wrong\n- and 2 more"},
		"a source":          {fmt.Errorf("server \"s\": %w", registry.ErrSourceFailed), "Continue without it. server \"s\": " + registry.ErrSourceFailed.Error()},
		"a busy source":     {fmt.Errorf("calling: %w", busy{}), "Try again in 7s. calling: server \"s\": 429"},
		"no tool":           {&registry.NotFoundError{Name: "t"}, "There is no such tool. Call only tools that are declared or that were found."},
		"no tool, in short": {registry.ErrNotFound, "There is no such tool. Call only tools that are declared or that were found."},
		"a disabled tool":   {&registry.NotFoundError{Name: "t", Hidden: hidden}, `The tool "t" is disabled. Continue without it.`},
		"a renamed tool":    {&registry.NotFoundError{Name: "t", Hidden: renamed}, `The tool "t" is now named "new". Call it by that name.`},
		"denied":            {&Denied{Tool: "t", Reason: "not here", Origin: "/home/me/settings.yaml:3"}, "was not run: not here. " + goOn + "."},
		"denied for now":    {&Denied{Tool: "t", Reason: "the store is away; try again later", Origin: "default", Later: true}, "This call was not run: the store is away; try again later."},
		"denied, in short":  {registry.ErrDenied, "This call is not allowed, so it was not run. " + goOn + "."},
		"denied by a hook":  {fmt.Errorf("calling: %w", refused{}), "Not allowed: use staging."},
		"a no":              {&Denied{Tool: "t", Origin: OriginPerson}, "The user said no to this call, so it was not run. " + goOn + " or ask the user."},
		"a no with reason":  {&Denied{Tool: "t", Origin: OriginPerson, Said: "use make"}, "The reason given: use make\n" + goOn + " or ask the user."},
		"no answer":         {&Denied{Tool: "t", Origin: OriginPerson, Reason: "no answer within 5s"}, "did not approve it (no answer within 5s), so it was not run. " + goOn + " or ask the user."},
		"nobody to ask":     {&NeedsConfirmation{Tool: "t", Hint: "--yes"}, "tell the user what you would have done."},
		"a time limit":      {&TimeoutError{Tool: "t"}, "Check before you repeat it, or request less."},
		"a script":          {&ScriptError{At: "script:2:1", Err: registry.ErrDenied}, "The script ended with its call at script:2:1. This call is not allowed, so it was not run. " + goOn + "."},
		"a script's tool":   {&ScriptError{At: "script:2:1", Done: "edit (2 times)", Err: &registry.NotFoundError{Name: "t"}}, `There is no tool "t"; search(words) finds tools. Finished before: edit (2 times).`},
		"a script that waits": {&ScriptError{At: "script:2:1", Done: "edit", Err: &NeedsConfirmation{Tool: "t", Kept: &policy.KeptQuestion{}}},
			"make exactly the same call again. Until then, continue without it. The calls before it are finished and will not be made again: edit."},
		"anything else": {errors.New("boom"), "The call failed: boom"},
	} {
		if got := Explain(tt.err); !strings.HasSuffix(got, tt.want) || strings.Contains(got, "/home/me") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
