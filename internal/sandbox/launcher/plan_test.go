package launcher

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPlan(t *testing.T) {
	want := &Plan{
		UID: 1000, GID: 100, Loopback: true, Listen: []int{61080, 80},
		Ops:    []Op{{Kind: Bind, Flags: 9, A: "/a b", B: "/é", C: "x", Skip: true}, {Kind: MountPro}},
		Rules:  []Rule{{Path: "/tmp", Access: 1<<16 - 1, IsFile: true}},
		Filter: []byte{0, 1, 0xff}, Watched: true, Dir: "/", SameDir: true,
		Program: "/bin/true", Argv: []string{"true", ""}, Env: []string{"A=\n"},
	}
	data := want.Encode()
	got, ok := Decode(data)
	if !ok {
		t.Fatal("it cannot be decoded")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for n := range data {
		if _, ok := Decode(data[:n]); ok {
			t.Fatalf("the first %d of %d bytes are a plan", n, len(data))
		}
	}
	if _, ok := Decode(append(data, 0)); ok {
		t.Error("a plan with a byte too many is one")
	}
}

// A plan that is damaged is refused at once, however many entries a list is said to have.
func TestDamagedPlan(t *testing.T) {
	data := (&Plan{}).Encode()
	lists := 0
	for at := 0; at < len(data); at += 8 {
		damaged := bytes.Clone(data)
		damaged[at+7] = 0x40
		if _, ok := Decode(damaged); !ok {
			lists++
		}
	}
	if lists != 8 { // ports, steps, rules, arguments, variables, and three texts
		t.Errorf("%d numbers are refused", lists)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add((&Plan{Argv: []string{"a"}}).Encode(), Report{Kind: Failed, Value: 1, Step: "x"}.Encode())
	f.Fuzz(func(t *testing.T, plan, report []byte) {
		if p, ok := Decode(plan); ok {
			if again, ok := Decode(p.Encode()); !ok || !cmp.Equal(p, again, cmpopts.EquateEmpty()) {
				t.Errorf("%+v is encoded as %+v", p, again)
			}
		}
		DecodeReport(report)
	})
}
