package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// condition is the condition under which a tool is enabled.
type condition struct {
	channels []string       // empty means all
	wanted   map[string]any // values by dotted keys of the context; may be nil
	when     *jq.Expression // may be nil
}

// readCondition reads the fields channels and when of a declaration; evaluator is
// for [jq.Expression.Isolated].
func readCondition(o object, evaluator []string) (condition, error) {
	var c condition
	if raw := o["channels"]; present(raw) && json.Unmarshal(raw, &c.channels) != nil {
		return c, fmt.Errorf("its channels: %s, not a list of strings", jsonx.KindOf(raw))
	}
	raw := o["when"]
	if !present(raw) {
		return c, nil
	}
	v, err := jq.Decode(raw)
	if err != nil {
		return c, fmt.Errorf("its when: %w", err)
	}
	switch v := v.(type) {
	case map[string]any:
		c.wanted = v
	case string:
		if c.when, err = jq.Compile(v); err != nil {
			return c, fmt.Errorf("its when is %w", err)
		}
		c.when = c.when.Isolated(evaluator)
	default:
		return c, fmt.Errorf("its when is %s, not an object or a jq expression", jsonx.KindOf(raw))
	}
	return c, nil
}

// present reports whether a declaration has a field; null means that it has not.
func present(raw json.RawMessage) bool { return !jsonx.IsNull(raw) }

// unmet describes the first condition that is not met, or returns "" if all are. A
// condition that cannot be evaluated is not met. The context is decoded for each
// evaluation, because jq modifies its input.
func (c condition) unmet(ctx context.Context, about json.RawMessage) string {
	if len(c.channels) == 0 && c.wanted == nil && c.when == nil {
		return ""
	}
	v, err := jq.Decode(about)
	if err != nil {
		return "the context cannot be read: " + err.Error()
	}
	facts, _ := v.(map[string]any)
	channel, _ := facts["channel"].(string)
	if len(c.channels) > 0 && !slices.Contains(c.channels, channel) {
		return fmt.Sprintf("it is for channel %s, and this is %s", strings.Join(c.channels, ", "),
			cmp.Or(channel, "no channel (--channel)"))
	}
	for _, key := range slices.Sorted(maps.Keys(c.wanted)) {
		if have := lookUp(facts, key); !matches(have, c.wanted[key]) {
			return fmt.Sprintf("its condition on %s is not met: expected %s, got %s",
				key, encode(c.wanted[key]), encode(have))
		}
	}
	if c.when == nil {
		return ""
	}
	switch ok, err := jq.Holds(c.when.ValueBriefly(ctx, facts)); {
	case err != nil:
		return fmt.Sprintf("its condition %q failed: %s", c.when.Text, err)
	case !ok:
		return fmt.Sprintf("its condition %q is not met", c.when.Text)
	}
	return ""
}

// lookUp finds a dotted key, trying the whole name first.
func lookUp(facts map[string]any, key string) any {
	if v, ok := facts[key]; ok {
		return v
	}
	group, rest, ok := strings.Cut(key, ".")
	if !ok {
		return nil
	}
	inner, _ := facts[group].(map[string]any)
	return lookUp(inner, rest)
}

// matches reports whether a value equals the wanted value, or one of a list.
func matches(have, want any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(w any) bool { return reflect.DeepEqual(have, w) })
	}
	return reflect.DeepEqual(have, want)
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // cannot happen: strings and what JSON was decoded to always encode
	}
	return data
}

// DisabledFilter hides the tools of plugins that are listed in plugins.disabled.
func DisabledFilter(entries []registry.Entry) registry.Filter {
	return func(t *registry.Tool) *registry.Hidden {
		if t.Plugin == "" {
			return nil
		}
		if e, ok := registry.MatchAny(entries, t.Plugin); ok {
			return &registry.Hidden{Reason: "plugins.disabled lists its plugin " + t.Plugin, Setting: e.Setting}
		}
		return nil
	}
}

// ConditionFilter hides tools whose channels or conditions do not match this
// run.
func ConditionFilter() registry.Filter {
	return func(t *registry.Tool) *registry.Hidden {
		if t.Unmet == "" {
			return nil
		}
		return &registry.Hidden{Reason: t.Unmet, Setting: t.Declared}
	}
}
