package overrides

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// checkSchema checks outputSchema, whose type the settings do not check.
func (o *override) checkSchema() {
	switch kind := jsonx.KindOf(o.OutputSchema); kind {
	case jsonx.None, jsonx.True, jsonx.False:
	case jsonx.Object:
		settled, err := registry.SettleDeclared(o.OutputSchema)
		if err != nil {
			o.fail("/outputSchema", "the schema cannot be used: "+err.Error(), "")
			return
		}
		o.OutputSchema = settled
	default:
		o.fail("/outputSchema", "expected true, false or a JSON Schema, got "+kind.String(), "")
	}
}

// checkInputExamples checks that the input examples are valid in the new shape,
// because a provider would reject the whole request otherwise.
func (s *shaping) checkInputExamples(out *registry.Tool) {
	if len(s.InputExamples) == 0 {
		return
	}
	schema := registry.NewValidator(out.InputSchema)
	for i, example := range s.InputExamples {
		place := fmt.Sprintf("/inputExamples/%d", i)
		params, err := jsonx.Parse(example, jsonx.Options{Depth: registry.MaxDepth})
		if err != nil || !params.Is(jsonx.Object) {
			s.fail(place, "expected an object with params", "")
			continue
		}
		violations, err := schema.Validate(s.ctx, example)
		switch {
		case err == nil && len(violations) > 0:
			err = &registry.ArgsError{Tool: out.Name, Violations: violations}
		case err == nil && s.to != nil:
			err = s.to.refuse(params)
		}
		if err != nil {
			s.fail(place, err.Error(), "write the params as in a call")
		}
	}
}
