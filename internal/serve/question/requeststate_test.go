package question

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const secret = "0123456789abcdef0123456789abcdef"

func example() *requestState {
	return &requestState{ID: "one", Owner: "alice", Request: digestOf("tools/call", "x", "{}"), Stage: &callStage{
		Approval: &callApproval{Question: digestOf("sure?"), Decision: "always"},
		Server:   &serverStage{Name: "m", State: []byte(`"<opaque> \u0041"`), Keys: []string{"it"}, Round: 2},
	}}
}

func seal(t testing.TB, k *stateKeys, s *requestState) string {
	t.Helper()
	text, err := k.Seal(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A process reads the states of another process with the same secret, byte for byte.
func TestProcessesShareStates(t *testing.T) {
	made := example()
	text := seal(t, newStateKeys(secret), made)
	got, err := newStateKeys(secret).Open(text)
	if diff := cmp.Diff(made, got); err != nil || diff != "" {
		t.Errorf("%v (-made +read):\n%s", err, diff)
	}
	for _, hidden := range []string{"alice", "opaque", "always"} {
		if raw, _ := base64.RawURLEncoding.DecodeString(text); strings.Contains(string(raw), hidden) {
			t.Errorf("the client can read %q", hidden)
		}
	}
	for _, other := range []string{"", "", "another secret"} {
		if _, err := newStateKeys(other).Open(text); !errors.Is(err, errOtherKey) {
			t.Errorf("with the secret %q: %v", other, err)
		}
	}
}

func TestAlteredStatesAreRefused(t *testing.T) {
	k := newStateKeys(secret)
	sealed, err := base64.RawURLEncoding.DecodeString(seal(t, k, example()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		altered := append([]byte(nil), sealed...)
		altered[i] ^= 1
		want := errMalformed
		if i >= 1 && i < header {
			want = errOtherKey
		}
		if _, err := k.Open(base64.RawURLEncoding.EncodeToString(altered)); !errors.Is(err, want) {
			t.Errorf("byte %d altered: %v", i, err)
		}
		if _, err := k.Open(base64.RawURLEncoding.EncodeToString(sealed[:i])); err == nil {
			t.Errorf("cut at byte %d: accepted", i)
		}
	}
	for _, text := range []string{"", "x", "=", "made up", strings.Repeat("A", 1<<20)} {
		if _, err := k.Open(text); err == nil {
			t.Errorf("%.20q: accepted", text)
		}
	}
}

func TestStatesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStateKeys(secret)
		text := seal(t, k, example())
		time.Sleep(AnswerTime - time.Second)
		if _, err := k.Open(text); err != nil {
			t.Errorf("after less than the lifetime: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := k.Open(text); !errors.Is(err, errExpired) {
			t.Errorf("after the lifetime: %v", err)
		}
	})
}

// After a change of the secret earlier states remain valid.
func TestStatesOutliveChangeOfSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newStateKeys(secret)
		text := seal(t, k, example())
		k.Change("a third secret")
		k.Change("another secret")
		k.Change("another secret") // as after every reload of the settings
		if _, err := k.Open(text); err != nil {
			t.Errorf("made before the change: %v", err)
		}
		if _, err := newStateKeys("another secret").Open(seal(t, k, example())); err != nil {
			t.Errorf("made after the change: %v", err)
		}
		time.Sleep(AnswerTime)
		if _, err := k.Open(text); !errors.Is(err, errOtherKey) {
			t.Errorf("after the lifetime: %v", err)
		}
	})
}

// States that were not made with the key are rejected. Each process of the fuzzer makes
// its own key.
func FuzzOpen(f *testing.F) {
	k := newStateKeys(secret)
	f.Add(seal(f, k, example()))
	f.Add(seal(f, newStateKeys("another secret"), example()))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := k.Open(text)
		if err != nil {
			return
		}
		want := example()
		want.Expires = got.Expires
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-made +read):\n%s", text, diff)
		}
	})
}
