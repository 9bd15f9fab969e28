//go:build amd64 || arm64

package sandbox

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// While a program runs, its log shows it for a while, until the guard of the program can; a
// watcher ends with its program.
func TestLogShowsThatTheProgramRuns(t *testing.T) {
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, names := range []*Names{{Log: log}, {}} {
		listener, program, err := os.Pipe() // it has nothing to say
		if err != nil {
			t.Fatal(err)
		}
		w, err := watch(listener, names)
		if err != nil {
			t.Fatal(err)
		}
		for names.Log != nil {
			if data, err := os.ReadFile(log.Name()); len(data) >= 20 || err != nil {
				break
			}
			runtime.Gosched()
		}
		program.Close()
		<-w.done
		w.close()
	}
	if data, err := os.ReadFile(log.Name()); string(data) != strings.Repeat("\x00", 20) {
		t.Errorf("the log has %q, %v", data, err)
	}
	(*watcher)(nil).close()
}
