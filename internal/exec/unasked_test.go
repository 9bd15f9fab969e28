package exec

import (
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// TestPreviewThatFindsAFailure gives the result that the call would have had,
// without asking and without running.
func TestPreviewThatFindsAFailure(t *testing.T) {
	r := newRig(ask())
	r.tool.Preview = failPreview(&registry.FailedError{Result: registry.ErrorResult(registry.ErrorExecution, "not found")})
	got, err := r.execute(t, `{}`)
	if err != nil || !got.IsError || got.ErrorCategory != registry.ErrorExecution || got.Text() != "not found" {
		t.Errorf("%+v, %v", got, err)
	}
	if len(r.ran)+len(r.script.asked) > 0 {
		t.Errorf("ran %q, asked %d times", r.ran, len(r.script.asked))
	}
}
