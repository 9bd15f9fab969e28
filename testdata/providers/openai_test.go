package providers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// openAIFunction is what the rules are about, in either API.
type openAIFunction struct {
	Name, Description string
	Parameters        object
	Strict            *bool
}

func (f *openAIFunction) check(strict bool) error {
	if !dashed.MatchString(f.Name) {
		return fmt.Errorf("the name %q", f.Name)
	}
	if f.Strict != nil && *f.Strict != strict && !strict {
		return fmt.Errorf("%s is strict", f.Name)
	}
	rules := openAIRules
	if f.Strict != nil && *f.Strict {
		rules = strictRules
	}
	if err := rules(f.Parameters); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

func checkOpenAI(raw json.RawMessage, strict bool) (string, bool, error) {
	var tool openai.ChatCompletionToolUnionParam
	if err := decode(raw, &tool); err != nil {
		return "", false, err
	}
	var d struct{ Function openAIFunction }
	if err := json.Unmarshal(raw, &d); err != nil {
		return "", false, err
	}
	return d.Function.Name, d.Function.Strict != nil && *d.Function.Strict, d.Function.check(strict)
}

func checkResponses(raw json.RawMessage, strict bool) (string, bool, error) {
	var tool responses.ToolUnionParam
	if err := decode(raw, &tool); err != nil {
		return "", false, err
	}
	var f openAIFunction
	if err := json.Unmarshal(raw, &f); err != nil {
		return "", false, err
	}
	if f.Strict == nil { // absent means true there
		return f.Name, false, fmt.Errorf("%s does not say whether it is strict", f.Name)
	}
	return f.Name, *f.Strict, f.check(strict)
}

func TestOpenAI(t *testing.T) {
	for format, check := range map[string]func(json.RawMessage, bool) (string, bool, error){"openai": checkOpenAI, "openai-responses": checkResponses} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s strict=%v", format, strict), func(t *testing.T) {
				args := []string{"--request"}
				if strict {
					args = append(args, "--strict")
				}
				names, made := newNames(t), 0
				for _, raw := range declarations(t, format, args...) {
					name, isStrict, err := check(raw, strict)
					if err != nil {
						t.Error(err)
					}
					names.add(name)
					if isStrict {
						made++
					}
				}
				names.want(len(names.seen), declarable())
				if strict && made < 150 {
					t.Errorf("only %d of %d tools are strict", made, len(names.seen))
				}
			})
		}
	}
}
