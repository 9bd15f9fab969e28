package settings

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/settings/table"
)

// Schema returns the JSON Schema of a settings file, for `toolreg settings
// schema` and for editors.
func Schema() json.RawMessage { return table.Schema() }
