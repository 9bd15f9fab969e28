//go:build !unix

package shell

import (
	"context"
	"errors"
)

// Keep is not available without process groups.
func Keep(context.Context, []string) error {
	return errors.New("background commands need process groups, which this system does not have")
}
