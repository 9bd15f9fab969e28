package settings

import "github.com/toolreg/toolreg/internal/settings/table"

// Mask is [table.Mask].
func Mask(s string) string { return table.Mask(s) }

// MaskArgs is [table.MaskArgs].
func MaskArgs(args []string) []string { return table.MaskArgs(args) }

// TellsSecret is [table.TellsSecret].
func TellsSecret(name string) bool { return table.TellsSecret(name) }
