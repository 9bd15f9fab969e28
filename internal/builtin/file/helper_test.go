package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (workspace.Options, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return workspace.Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()}, dir
}

// find returns a tool made with the options.
func find(t testing.TB, opts workspace.Options, name string) registry.Tool {
	t.Helper()
	w := tooltest.Open(t, workspace.NewEditor(opts))
	return tooltest.Find(t, name, NewReadFile(w.Dir, nil), NewWriteFile(w), NewEdit(w), NewApplyPatch(w))
}

// run makes a call that must succeed.
func run(t testing.TB, opts workspace.Options, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

func TestParamsMatchSchema(t *testing.T) {
	w := tooltest.Open(t, workspace.NewEditor(workspace.Options{}))
	tooltest.SameParams[readParams](t, NewReadFile(w.Dir, nil))
	tooltest.SameParams[writeFileParams](t, NewWriteFile(w))
	tooltest.SameParams[editParams](t, NewEdit(w))
	tooltest.SameParams[patchParams](t, NewApplyPatch(w))
}

// The tools that change files refuse files of more than 20 MiB. Only write_file
// replaces such a file, and its preview says that it shows no diff.
func TestFilesTooLargeToChange(t *testing.T) {
	const patch = "--- a/big.txt\n+++ b/big.txt\n@@ -1 +1 @@\n-a\n+b\n"
	for name, params := range map[string]string{
		"edit":        `{"file_path":"big.txt","old_string":"a","new_string":"b"}`,
		"apply_patch": patchParam(t, patch),
		"write_file":  `{"file_path":"big.txt","content":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{"big.txt": "a\n"})
			if err := os.Truncate(filepath.Join(dir, "big.txt"), 20<<20+1); err != nil {
				t.Fatal(err)
			}
			if name == "write_file" {
				const want = `The whole file "big.txt", which is larger than 20.0 MiB, is replaced by 2 B of text.`
				if p, err := find(t, opts, name).Preview(t.Context(), tooltest.Call(params)); err != nil || !strings.Contains(p.Diff, want) {
					t.Errorf("the preview %.300s, %v", p.Diff, err)
				}
				return
			}
			if r := run(t, opts, name, params); !r.IsError || !strings.Contains(r.Text(), `is larger than 20.0 MiB; change it with a command`) {
				t.Errorf("%.300s", r.Text())
			}
		})
	}
}
