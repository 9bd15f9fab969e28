// serveload measures toolreg serve: what a call through it costs more than a call of
// the same warm server, how many calls it answers, and how much memory it needs.
//
//	serveload [-row PATTERN] [-calls N] [-time D]
//
// It needs toolreg, stub and sdkgateway on the PATH. Ways to call are measured in
// turn, so that other work on the machine meets all of them.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// way is one way to call.
type way struct {
	name string
	// connect returns a function that makes one request of a connection of its own.
	connect func() func(method, params string) error
	pid     int // of the process in between, 0 if there is none
}

const echo = `"name":"tool_1","arguments":{"text":"hello"}`

func main() {
	log.SetFlags(0)
	row := flag.String("row", ".", "measure rows that match `PATTERN`")
	calls := flag.Int("calls", 3000, "calls of each way, one after the other")
	load := flag.Duration("time", 10*time.Second, "how long calls at once are made in each way")
	bad := flag.Int("attack", -1, "behave badly, as the `NUMBER` says, to the server at the address in the argument")
	flag.Parse()
	if *bad >= 0 {
		runAttack(*bad, flag.Arg(0))
		return
	}
	wanted := regexp.MustCompile(*row)
	do := func(name string, f func()) {
		if wanted.MatchString(name) {
			f()
		}
	}
	fmt.Println("| work | direct | bare SDK gateway | serve, stdio | serve, HTTP, 2025-11-25 | serve, HTTP, 2026-07-28 |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	ways := start("stub")
	do("calls", func() { latencies(ways, *calls) })
	do("load", func() { throughput(ways, *load) })
	ways = start("stub", "-tools", "1000", "-schema", "1000")
	do("list", func() { lists(ways, max(*calls/100, 5)) })
	do("many", func() { forMany(*calls, *load) })
	noise(*load, do)
	do("memory", memory)
}

// start starts the same server behind everything that is measured.
func start(server ...string) []*way {
	gateway := newGateway(server)
	serve := newServe(1, server)
	return []*way{
		{name: "direct", connect: func() func(string, string) error { return newStdio(server...).request }},
		{name: "gateway", pid: gateway.pid, connect: func() func(string, string) error { return newHTTP(gateway.url, "", legacy).request }},
		newServeStdio(server),
		{name: "serve legacy", pid: serve.pid, connect: func() func(string, string) error { return newHTTP(serve.url, clientNames()[0], legacy).request }},
		{name: "serve modern", pid: serve.pid, connect: func() func(string, string) error { return newHTTP(serve.url, clientNames()[0], modern).request }},
	}
}

// newServeStdio is serve over stdio, which has one connection.
func newServeStdio(server []string) *way {
	c := newStdio("toolreg", "--settings", settings(1, server), "serve", "--source", "mcp:*")
	var mu sync.Mutex
	return &way{name: "serve stdio", pid: c.pid, connect: func() func(string, string) error {
		return func(method, params string) error {
			mu.Lock()
			defer mu.Unlock()
			return c.request(method, params)
		}
	}}
}

// timed makes requests in each way, some at a time in turn, and returns their times in
// order.
func timed(ways []*way, n int, method, params string) [][]time.Duration {
	out := make([][]time.Duration, len(ways))
	requests := make([]func(string, string) error, len(ways))
	for i, w := range ways {
		requests[i] = w.connect()
	}
	const atOnce = 20
	for done := -atOnce; done < n; done += atOnce { // the first ones warm up
		for i, w := range ways {
			for range atOnce {
				begin := time.Now()
				if err := requests[i](method, params); err != nil {
					log.Fatalf("%s: %v", w.name, err)
				}
				if done >= 0 {
					out[i] = append(out[i], time.Since(begin))
				}
			}
		}
	}
	for _, times := range out {
		slices.Sort(times)
	}
	return out
}

func latencies(ways []*way, n int) {
	times := timed(ways, n, "tools/call", echo)
	for _, p := range []int{50, 99} {
		fmt.Printf("| call, p%d, ms |", p)
		direct := times[0][len(times[0])*p/100]
		for i := range ways {
			t := times[i][len(times[i])*p/100]
			if i == 0 {
				fmt.Printf(" %.2f |", ms(t))
				continue
			}
			fmt.Printf(" %+.2f |", ms(t-direct))
		}
		fmt.Println()
	}
}

func lists(ways []*way, n int) {
	times := timed(ways, n, "tools/list", "")
	fmt.Print("| tools/list, 1,000 tools, p50, ms |")
	direct := times[0][len(times[0])/2]
	for i := range ways {
		t := times[i][len(times[i])/2]
		fmt.Printf(" %.1f, %.2f× |", ms(t), float64(t)/float64(direct))
	}
	fmt.Println()
}

// throughput makes calls over eight connections at once, in each way for a quarter of
// the time and again.
func throughput(ways []*way, d time.Duration) {
	rate, cpu := make([]float64, len(ways)), make([]float64, len(ways))
	const rounds = 4
	for range rounds {
		for i, w := range ways {
			before := cpuTime(w.pid)
			n := hammer(w, d/rounds)
			rate[i] += float64(n) / d.Seconds()
			cpu[i] += float64((cpuTime(w.pid) - before).Microseconds()) / float64(n) / rounds
		}
	}
	fmt.Print("| calls a second, 8 at once |")
	for _, r := range rate {
		fmt.Printf(" %.0f |", r)
	}
	fmt.Print("\n| its processor time for a call, µs | |")
	for _, c := range cpu[1:] {
		fmt.Printf(" %.0f |", c)
	}
	fmt.Println()
}

func hammer(w *way, d time.Duration) int {
	var wg sync.WaitGroup
	counts := make([]int, 8)
	connections := make([]func(string, string) error, len(counts))
	for i := range connections {
		connections[i] = w.connect()
	}
	until := time.Now().Add(d)
	for i, request := range connections {
		wg.Go(func() {
			for time.Now().Before(until) {
				if err := request("tools/call", echo); err != nil {
					log.Fatalf("%s: %v", w.name, err)
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// memory measures serve with ten servers after some work, and what each idle client
// adds.
func memory() {
	serve := newServe(10, []string{"stub"})
	var clients []*httpClient
	open := func(n int, idle time.Duration) int {
		for len(clients) < n {
			c := newHTTP(serve.url, clientNames()[0], legacy)
			if err := c.request("tools/list", ""); err != nil {
				log.Fatal(err)
			}
			clients = append(clients, c)
		}
		for range 500 {
			if err := clients[0].request("tools/call", strings.Replace(echo, "tool_1", "s1__tool_1", 1)); err != nil {
				log.Fatal(err)
			}
		}
		time.Sleep(idle)
		return resident(serve.pid)
	}
	const collected = 130 * time.Second // the runtime collects what is left every two minutes
	ten := open(1, time.Second)
	few := open(300, collected)
	many := open(900, collected) // serve.maxClients is 1,000
	fmt.Printf("| memory with ten servers, MiB | | | | %.0f | |\n", float64(ten)/(1<<20))
	fmt.Printf("| memory for each idle client, KiB | | | | %.0f | |\n", float64(many-few)/600/(1<<10))
	for _, c := range clients {
		c.end()
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpuTime returns the processor time that a process has used.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident returns the memory of a process.
func resident(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kib << 10
}
