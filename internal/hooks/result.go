package hooks

import (
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// resultMessage is a result in the input of a hook, with the field names of `call
// --json`.
type resultMessage struct {
	OK            bool                   `json:"ok"`
	IsError       bool                   `json:"isError,omitempty"`
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"`
	LLMContent    []registry.Content     `json:"llmContent"`
	Structured    json.RawMessage        `json:"structuredContent,omitempty"`
	DurationMs    int64                  `json:"durationMs"`
	Truncated     bool                   `json:"truncated,omitempty"`
}

func newResultMessage(r registry.Result) *resultMessage {
	content := r.Content
	if content == nil {
		content = []registry.Content{}
	}
	return &resultMessage{OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, LLMContent: content,
		Structured: r.Structured, DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated}
}

// replace returns the result from a hook's answer. From the tool's own result it
// keeps only the facts about the run, because text that the hook removed must not
// remain in the display or in a location.
func replace(old registry.Result, raw json.RawMessage) (registry.Result, error) {
	var in struct {
		LLMContent json.RawMessage `json:"llmContent"`
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := jsonx.DecodeKnown(raw, &in); err != nil {
		return registry.Result{},
			fmt.Errorf("its result is invalid: %w; it takes llmContent, isError and structuredContent", err)
	}
	r := registry.Result{
		IsError: in.IsError, Structured: in.Structured, Duration: old.Duration, Cached: old.Cached,
		Attempts: old.Attempts, Confined: old.Confined,
	}
	if r.IsError {
		r.ErrorCategory = old.ErrorCategory
		if r.ErrorCategory == "" {
			r.ErrorCategory = registry.ErrorExecution
		}
	}
	var err error
	if r.Content, err = registry.ParseContent(in.LLMContent); err != nil {
		return r, fmt.Errorf("its result needs llmContent: %w", err)
	}
	return r, nil
}
