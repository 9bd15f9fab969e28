package process

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// The first and the last bytes of the stream are kept, and memory stays
// bounded, whatever the sizes of the chunks.
func TestCaptureKeepsHeadAndTail(t *testing.T) {
	stream := make([]byte, 5000)
	for i := range stream {
		stream[i] = byte(i*7) & 0x7f
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int64{1, 2, 3, 10, 999, 1000, 4999, 5000, 5001, 20000} {
		c := newCapture(-1, limit)
		for rest := stream; len(rest) > 0; {
			n := min(1+random.IntN(700), len(rest))
			if !c.add(rest[:n]) {
				t.Fatal("over the limit with head and tail")
			}
			rest = rest[n:]
			if held := int64(len(c.head) + len(c.tail)); held > 2*limit {
				t.Fatalf("limit %d: holds %d bytes", limit, held)
			}
		}
		out, head, cut := c.result()
		if wantCut := limit < 5000; cut != wantCut || int64(len(out)) != min(limit, 5000) || c.total != 5000 {
			t.Fatalf("limit %d: kept %d of %d, cut %v", limit, len(out), c.total, cut)
		}
		if !bytes.HasPrefix(stream, out[:head]) || !bytes.HasSuffix(stream, out[head:]) {
			t.Errorf("limit %d: kept something else than the ends", limit)
		}
		if cut && head != int(limit/2) {
			t.Errorf("limit %d: cut at %d", limit, head)
		}
	}
}

func TestCaptureCutsBetweenCharacters(t *testing.T) {
	for _, c := range []string{"é", "日", "😀", "a😀é"} {
		stream := strings.Repeat(c, 1000)
		for limit := range int64(40) {
			kept := newCapture(-1, limit+1)
			kept.add([]byte(stream))
			out, head, cut := kept.result()
			if before, after := string(out[:head]), string(out[head:]); !cut || !utf8.Valid(out[:head]) || !utf8.Valid(out[head:]) ||
				!strings.HasPrefix(stream, before) || !strings.HasSuffix(stream, after) || len(out) < int(limit+1)-2*(utf8.UTFMax-1) {
				t.Errorf("%s: limit %d: kept %q and %q, cut %t", c, limit+1, before, after, cut)
			}
		}
	}
}

func TestCaptureWithoutLimitKeepsAll(t *testing.T) {
	c := newCapture(-1, 0)
	for range 100 {
		if !c.add(make([]byte, 1000)) {
			t.Fatal("over no limit")
		}
	}
	if out, _, cut := c.result(); len(out) != 100_000 || cut {
		t.Errorf("kept %d, cut %v", len(out), cut)
	}
}
