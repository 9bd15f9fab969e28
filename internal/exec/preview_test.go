package exec

import (
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// TestPreviewFailureIsResult checks that a call whose preview finds that it can
// only fail returns that result, without asking and without running the tool.
func TestPreviewFailureIsResult(t *testing.T) {
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
