//go:build !unix

package mcptest

import "errors"

func startSleeper() (int, error) { return 0, errors.New("--grandchild needs a Unix system") }

func ignoreSignals() {}
