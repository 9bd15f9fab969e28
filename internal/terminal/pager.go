package terminal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

// page shows text, which may hold styles of ours, in the person's pager. Where
// there is none it is written as it is.
func (t *TTY) page(ctx context.Context, text string) error {
	argv, program := t.pager()
	if program == "" {
		return t.write(ctx, text)
	}
	file, err := os.CreateTemp("", "toolreg-view-") // 0600
	if err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(text); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	return t.runChild(ctx, program, argv, file)
}

// pager is the command line of the pager and where its program is, "" where no
// pager is there. Without settings of the person less keeps to the screen, as
// it does for git.
func (t *TTY) pager() (argv []string, program string) {
	for _, line := range []string{t.Pager, "less -FRX", "more"} {
		argv, err := process.Split(line)
		if err != nil || len(argv) == 0 {
			continue
		}
		if program, err := lookPath(argv[0], os.Getenv("PATH")); err == nil {
			if strings.TrimSuffix(filepath.Base(program), ".exe") == "less" && len(argv) == 1 {
				argv = append(argv, "-R") // colours are ours
			}
			return argv, program
		}
	}
	return nil, ""
}
