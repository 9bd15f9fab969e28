package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

type pokeParams struct {
	Way  string `json:"way"`
	Many int    `json:"many,omitempty"`
}

type pokeResult struct {
	Way string `json:"way"`
}

// poked answers at once, fails, or waits until it is canceled, as its params say.
func poked(ctx context.Context, r *Request, p pokeParams) (pokeResult, error) {
	switch p.Way {
	case "fail":
		return pokeResult{}, errors.New("it failed")
	case "wait":
		<-ctx.Done()
		return pokeResult{}, context.Cause(ctx)
	case "turn":
		return pokeResult{p.Way}, r.Wait(ctx)
	case "ask":
		raw, err := r.ask(ctx, "elicit", Elicit{})
		return pokeResult{string(raw)}, err
	}
	return pokeResult{p.Way}, nil
}

func pokes(w io.Writer) *Server {
	poke := NewMethod("poke", poked)
	poke.Calls = true
	return New(w, Options{Methods: []Method{poke}, Initialize: NewMethod("initialize", func(context.Context, *Request, struct{}) (struct{}, error) { return struct{}{}, nil }),
		ErrorData: func(_ context.Context, err error) (string, any) { return err.Error(), nil }})
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// Whatever a host sends, each line is answered once at most, by JSON-RPC messages of one line
// each, every request that can be matched is answered, and the server ends with the input.
func FuzzServer(f *testing.F) {
	for _, lines := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"poke","params":{"way":"x"}}`, `{"jsonrpc":"2.0","id":"a","method":"poke","params":{"way":"wait"}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"cancel","params":{"id":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"poke","params":{"way":"ask"}}` + "\n" + `{"jsonrpc":"2.0","id":"toolreg-1","result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"toolreg-1","error":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"poke","params":{"way":"turn"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"poke"}`, "[]\n{}\nnull\n\n\xff\n", `{"jsonrpc":"2.0","method":"cancel"}`,
		`{"id":{"a":[`, `{"jsonrpc":"2.0","id":1e400,"method":"poke","params":{"way":"fail"}}`, `{"jsonrpc":"2.0","id":"\u202e","method":"poke","params":{"way":"\u0000"}}`,
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var out safeBuffer
		first := `{"jsonrpc":"2.0","id":"first","method":"initialize"}` + "\n"
		if err := pokes(&out).Serve(t.Context(), strings.NewReader(first+lines)); err != nil {
			t.Fatal(err)
		}
		out.mu.Lock()
		defer out.mu.Unlock()
		answers := 0
		for line := range strings.Lines(out.String()) {
			var m struct {
				JSONRPC, Method string
				ID              json.RawMessage
				Result, Error   json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" || !strings.HasSuffix(line, "\n") {
				t.Fatalf("printed %q: %v", line, err)
			}
			if m.Method == "" {
				answers++
				if (m.Result == nil) == (m.Error == nil) || m.ID == nil {
					t.Errorf("an answer %q", line)
				}
			}
		}
		if most := strings.Count(lines, "\n") + 2; answers > most {
			t.Errorf("%d answers to %d lines", answers, most)
		}
	})
}

// Places are given up in any order, and each request waits for exactly those before it.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		var got []string
		var mu sync.Mutex
		places := make([]*place, 4)
		for i := range places {
			places[i] = l.join()
		}
		places[2].Leave() // it only reads
		for _, i := range []int{3, 1, 0} {
			go func() {
				if err := places[i].Wait(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				got = append(got, fmt.Sprint(i))
				mu.Unlock()
				places[i].Leave()
				places[i].Leave()
			}()
			synctest.Wait()
		}
		if order := strings.Join(got, " "); order != "0 1 3" {
			t.Errorf("the order is %s", order)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		l.join()
		cancel(ErrCancelled)
		if err := l.join().Wait(ctx); err != ErrCancelled {
			t.Errorf("a canceled wait: %v", err)
		}
		if err := (*place)(nil).Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// blocked is a writer whose reader does not read until it is released.
type blocked struct {
	release chan struct{}
	safeBuffer
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.release
	return b.safeBuffer.Write(p)
}

// While the host does not read, no more results are made than it has room for. Requests that
// wait for the host hold up nothing, and a request that waits can be canceled.
func TestResultsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		w := &blocked{release: make(chan struct{})}
		made := 0
		var mu sync.Mutex
		large := NewMethod("large", func(context.Context, *Request, struct{}) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			made++
			return strings.Repeat("x", maxWaiting/100), nil
		})
		s := pokes(w)
		s.methods["large"] = &large
		in, host := io.Pipe()
		ended := make(chan error)
		go func() { ended <- s.Serve(t.Context(), in) }()
		say := func(id any, method, params string) {
			fmt.Fprintf(host, `{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`+"\n", fmt.Sprint(id), method, params)
		}
		say("first", "initialize", "{}")
		w.release <- struct{}{}
		synctest.Wait()
		s.out.send(bytes.Repeat([]byte("x"), maxWaiting+1))
		say("early", "large", "{}")
		synctest.Wait()
		if made != 0 {
			t.Error("a request is worked on although its answer would have to wait")
		}
		w.release <- struct{}{}
		for i := range maxWorking + 1 {
			say(fmt.Sprint("asks", i), "poke", `{"way":"ask"}`)
		}
		synctest.Wait()
		for i := range many {
			say(i, "large", "{}")
		}
		synctest.Wait()
		if most := 102 + maxWorking; made < 100 || made > most {
			t.Errorf("%d results are made, want 100 to %d", made, most)
		}
		fmt.Fprintln(host, `{"jsonrpc":"2.0","method":"cancel","params":{"id":"asks0"}}`)
		for i := range maxWorking + 1 {
			fmt.Fprintf(host, `{"jsonrpc":"2.0","id":"toolreg-%d","result":{}}`+"\n", i+1)
		}
		close(w.release)
		synctest.Wait()
		if made != many+1 {
			t.Errorf("%d results are made at last", made)
		}
		host.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := strings.Count(w.String(), "\n"); n != 2+2*(maxWorking+1)+many {
			t.Errorf("%d lines", n)
		}
	})
}

// While the host does not read, notifications are dropped and answers wait, in order.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blocked{release: make(chan struct{})}
		o := newOutbox(w)
		big := bytes.Repeat([]byte("x"), maxWaiting+1)
		o.send(big)
		synctest.Wait()
		o.post([]byte("dropped\n"))
		sent := false
		go func() {
			o.send([]byte("kept\n"))
			sent = true
		}()
		synctest.Wait()
		if sent {
			t.Error("an answer does not wait")
		}
		close(w.release)
		synctest.Wait()
		o.post([]byte("later\n"))
		o.flush()
		o.close()
		synctest.Wait()
		if got := strings.TrimLeft(w.String(), "x"); !sent || got != "kept\nlater\n" {
			t.Errorf("written: %q", got)
		}
		o.send([]byte("closed\n"))
	})
}
