package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// noise measures what clients that behave badly cost eight others that make a call
// each ten milliseconds: in turn with them and without.
func noise(d time.Duration) {
	serve := newServe(1, []string{"stub"})
	kinds := []struct {
		name        string
		connections int
		attack      func(ctx context.Context, url string)
	}{
		{"floods it with calls over 16 connections", 16, flood},
		{"sends half of a request over 100 connections", 100, hang},
		{"sends 1 GB, again and again", 1, oversize},
		{"breaks off its calls after 1 ms, again and again", 1, breakOff},
		{"answers what nobody asked, again and again", 1, answerTwice},
	}
	for _, kind := range kinds {
		var quiet, noisy int
		const rounds = 4
		for range rounds {
			quiet += paced(serve.url, d/rounds)
			ctx, stop := context.WithCancel(context.Background())
			var attacks sync.WaitGroup
			for range kind.connections {
				attacks.Go(func() {
					for ctx.Err() == nil {
						kind.attack(ctx, serve.url)
					}
				})
			}
			noisy += paced(serve.url, d/rounds)
			stop()
			attacks.Wait()
		}
		fmt.Printf("| others' calls while another client %s | | | | %.0f %% | |\n", kind.name, 100*float64(noisy)/float64(quiet))
	}
}

// paced returns how many calls eight clients make that wait between two.
func paced(url string, d time.Duration) int {
	var wg sync.WaitGroup
	var n atomic.Int64
	clients := make([]*httpClient, 8)
	for i := range clients {
		clients[i] = newHTTP(url, legacy)
	}
	until := time.Now().Add(d)
	for _, c := range clients {
		wg.Go(func() {
			for next := time.Now(); next.Before(until); next = next.Add(10 * time.Millisecond) {
				time.Sleep(time.Until(next))
				if time.Now().After(until) {
					return
				}
				if err := c.request("tools/call", echo); err != nil {
					log.Fatal(err)
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return int(n.Load())
}

func flood(ctx context.Context, url string) {
	c := newHTTP(url, legacy)
	for ctx.Err() == nil {
		_ = c.request("tools/call", echo) // refused or not
	}
}

func hang(ctx context.Context, url string) {
	conn, err := net.Dial("tcp", hostOf(url))
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{")
	<-ctx.Done()
}

func oversize(ctx context.Context, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(endless{}, 1<<30))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

func breakOff(ctx context.Context, url string) {
	c := newHTTP(url, legacy)
	defer c.close()
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		req, err := http.NewRequestWithContext(short, http.MethodPost, url, bytes.NewReader(message("tools/call", echo, legacy)))
		if err == nil {
			req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {c.session}}
			if resp, err := c.http.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		cancel()
	}
}

func answerTwice(ctx context.Context, url string) {
	c := newHTTP(url, legacy)
	for ctx.Err() == nil {
		_ = c.post([]byte(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`), "")
	}
}

func hostOf(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return host
}

// endless is a body without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
