package transport

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A client whose bodies are too large waits for its turn, and another one does not.
func TestLargeBodiesSlowOnlyTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Bodies{Max: 1 << 20}
		began := time.Now()
		read := func(name string, size int64) time.Duration {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, size)))
			r.ContentLength = -1
			body, err := b.Read(httptest.NewRecorder(), r, name)
			refusal, _ := errors.AsType[*Refusal](err)
			if size > b.Max && (refusal == nil || refusal.Status != http.StatusRequestEntityTooLarge) ||
				size <= b.Max && (int64(len(body)) != size || err != nil) {
				t.Errorf("%s: %d of %d bytes, %v", name, len(body), size, err)
			}
			return time.Since(began)
		}
		ends := make(chan time.Duration, largeAtOnce+1)
		for range cap(ends) {
			go func() { ends <- read("greedy", b.Max+1) }()
		}
		synctest.Wait()
		if took := read("other", b.Max); took != 0 {
			t.Errorf("another client waits for %s", took)
		}
		if took := read("greedy", smallBody-1); took != 0 {
			t.Errorf("a small body waits for %s", took)
		}
		for i := range cap(ends) {
			if took, want := <-ends, largePause*time.Duration(1+i/largeAtOnce); took != want {
				t.Errorf("body %d: %s, want %s", i, took, want)
			}
		}
	})
}
