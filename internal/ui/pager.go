package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

// Page shows text, which may have styles of [Paint], in the user's pager and waits
// for the pager to exit. Its exit code is ignored, because people leave it early.
func (t *TTY) Page(ctx context.Context, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.page(ctx, text)
}

// page is [TTY.Page] within a question. If there is no pager, it writes the text.
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
	if _, err := file.WriteString(Styled(text)); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	err = t.runChild(ctx, program, argv, file)
	if _, ended := errors.AsType[*endedError](err); ended {
		return nil
	}
	return err
}

// pager returns the command line of the pager and the path of its program; ""
// if there is none.
func (t *TTY) pager() (argv []string, program string) {
	for _, line := range []string{t.Pager, "less", "more"} {
		argv, err := process.Split(line)
		if err != nil || len(argv) == 0 {
			continue
		}
		if program, err := lookPath(argv[0], os.Getenv("PATH")); err == nil {
			if strings.TrimSuffix(filepath.Base(program), ".exe") == "less" && len(argv) == 1 {
				argv = append(argv, "-R") // colors are ours
			}
			return argv, program
		}
	}
	return nil, ""
}
