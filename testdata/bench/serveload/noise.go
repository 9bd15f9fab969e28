package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attack is one way to behave badly.
type attack struct {
	name        string
	connections int
	// behave does it on one connection until ctx is done, and calls count for each request.
	behave func(ctx context.Context, url string, count func())
}

var attacks = []attack{
	{"floods it with calls over 16 connections", 16, flood(legacy)},
	{"floods it with calls over 500 connections", 500, flood(legacy)},
	{"floods it with calls over 500 connections without sessions", 500, flood(modern)},
	{"sends half of a request over 100 connections", 100, hang},
	{"sends 1 GB, again and again", 1, oversize},
	{"breaks off its calls after 1 ms, again and again", 1, breakOff},
	{"answers what nobody asked, again and again", 1, answerTwice},
}

// noise measures what clients that behave badly cost eight others that make a call
// each twenty milliseconds: in turn with them and without. They are processes of their
// own with the lowest priority: what is measured is the work that serve does for
// them, not theirs, which a machine of their own would do.
func noise(d time.Duration, do func(row string, f func())) {
	serve := sync.OnceValue(func() gateway { return newServe(1, []string{"stub"}) })
	for i, kind := range attacks {
		do("noise: "+kind.name, func() {
			var quiet, noisy, made int
			const rounds = 8
			for range rounds {
				quiet += paced(serve().url, d/rounds)
				stop := startAttack(i, serve().url)
				noisy += paced(serve().url, d/rounds)
				made += stop()
			}
			fmt.Printf("| others' calls while another client %s (%d requests a second) | | | | %.1f %% | |\n", kind.name, made*int(time.Second)/int(d), 100*float64(noisy)/float64(quiet))
		})
	}
}

// startAttack starts a process that behaves badly. stop ends it and returns how many
// requests it has made.
func startAttack(kind int, url string) (stop func() int) {
	cmd := exec.Command("nice", "-n", "19", os.Args[0], "-attack", strconv.Itoa(kind), url)
	in, out := startPiped(cmd)
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil { // it has begun
		log.Fatal(err)
	}
	return func() int {
		_ = in.Close()
		text, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
}

// runAttack behaves badly until stdin ends, and prints how many requests it made.
func runAttack(kind int, url string) {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var n atomic.Int64
	for range attacks[kind].connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				attacks[kind].behave(ctx, url, func() { n.Add(1) })
			}
		})
	}
	fmt.Println("begun")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	wg.Wait()
	fmt.Println(n.Load())
}

// pause is how often a client that is measured makes a call: all of them together need
// a quarter of an idle machine.
const pause = 20 * time.Millisecond

// paced returns how many calls eight clients make that begin one each pause.
func paced(url string, d time.Duration) int {
	var wg sync.WaitGroup
	var n atomic.Int64
	var clients []*httpClient
	for _, name := range clientNames() {
		c := newHTTP(url, name, legacy)
		defer c.end()
		clients = append(clients, c)
	}
	until := time.Now().Add(d)
	for _, c := range clients {
		wg.Go(func() {
			for next := time.Now(); next.Before(until); next = next.Add(pause) {
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

func flood(version string) func(context.Context, string, func()) {
	return func(ctx context.Context, url string, count func()) {
		c := newHTTP(url, badClient, version)
		defer c.end()
		for ctx.Err() == nil {
			_ = c.request("tools/call", echo) // refused or not
			count()
		}
	}
}

func hang(ctx context.Context, url string, count func()) {
	conn, err := net.Dial("tcp", hostOf(url))
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+tokenOf(badClient)+"\r\nContent-Length: 100000\r\n\r\n{")
	count()
	<-ctx.Done()
}

func oversize(ctx context.Context, url string, count func()) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(endless{}, 1<<30))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+tokenOf(badClient))
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
	}
	count()
}

func breakOff(ctx context.Context, url string, count func()) {
	c := newHTTP(url, badClient, legacy)
	defer c.end()
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		_ = c.post(short, message("tools/call", echo, legacy), "")
		cancel()
		count()
	}
}

func answerTwice(ctx context.Context, url string, count func()) {
	c := newHTTP(url, badClient, legacy)
	defer c.end()
	for ctx.Err() == nil {
		_ = c.post(ctx, []byte(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`), "")
		count()
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
