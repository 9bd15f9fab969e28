package sandbox

import (
	"os"
	"strconv"
	"testing"
)

// Names are known by their folders, also by what is in the log if toolreg was killed.
func TestNames(t *testing.T) {
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := &Names{Log: log}
	n.add("1:2", "a")
	n.add("1:2", "a")
	n.beat()
	n.add("", "b")
	data, err := os.ReadFile(log.Name())
	if string(data) != "1:2/a\x00\x00/b\x00" {
		t.Errorf("the log has %q, %v", data, err)
	}
	for what, names := range map[string]*Names{"collected": n, "logged": Logged(data)} {
		for name, want := range map[[2]string]bool{{"1:2", "a"}: true, {"1:3", "a"}: false, {"1:2", "b"}: true, {"1:2", "c"}: false, {"", "a"}: false} {
			if got := names.Has(name[0], name[1]); got != want {
				t.Errorf("%s: %q is known: %v", what, name, got)
			}
		}
	}
	if (&Names{}).Has("1:2", "a") {
		t.Error("nothing was collected")
	}
}

func TestNamesAreLimited(t *testing.T) {
	n := &Names{}
	for i := range maxNames + 1 {
		n.add("1:2", strconv.Itoa(i))
	}
	if !n.Has("1:2", strconv.Itoa(maxNames-1)) || n.Has("1:2", strconv.Itoa(maxNames)) {
		t.Errorf("%d names are known", len(n.all))
	}
}
