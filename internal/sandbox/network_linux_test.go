//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// fetch requests the URLs in a variable, through the proxy and directly, and
// prints the results.
func fetch() {
	proxy := func(*http.Request) (*url.URL, error) {
		if address := os.Getenv("http_proxy"); address != "" {
			return url.Parse(address)
		}
		return nil, nil
	}
	for name, client := range map[string]*http.Client{
		"proxy":  {Transport: &http.Transport{Proxy: proxy}},
		"direct": {Transport: &http.Transport{}},
	} {
		for address := range strings.FieldsSeq(os.Getenv("SANDBOX_TEST_FETCH")) {
			text := "no connection"
			if response, err := client.Get(address); err == nil {
				body, _ := io.ReadAll(response.Body)
				text = strings.TrimSpace(string(body))
			} else if strings.Contains(err.Error(), "Forbidden") {
				text = "refused"
			}
			fmt.Printf("%s %s: %s\n", name, address, text)
		}
	}
}

// fetchIn fetches URLs in a sandbox.
func fetchIn(t *testing.T, network sandbox.Network, addresses ...string) (string, []string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	profile := p.profile()
	profile.Network, profile.Read = network, append(profile.Read, binary)
	confinement := &process.Confinement{Profile: &profile}
	ctx := process.WithConfinement(t.Context(), confinement)
	o, err := process.ConfinementOf(ctx).Run(ctx, process.Spec{
		Argv: []string{binary}, Dir: p.workspace,
		Env: append(p.environ(), "SANDBOX_TEST_ROLE=fetch", "SANDBOX_TEST_FETCH="+strings.Join(addresses, " ")),
	})
	if err != nil || o.ExitCode != 0 {
		t.Fatalf("%v, exit code %d: %s", err, o.ExitCode, o.Stderr)
	}
	return string(o.Stdout), confinement.Refused
}

func TestNetworks(t *testing.T) {
	needFull(t)
	hello := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.Host) }
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	address := func(host string) string {
		return "http://" + net.JoinHostPort(host, plain.URL[strings.LastIndexByte(plain.URL, ':')+1:])
	}
	here, named := address("127.0.0.1"), address("localhost")
	t.Run("all", func(t *testing.T) {
		got, _ := fetchIn(t, sandbox.Network{Mode: sandbox.NetworkAll}, here)
		if want := "direct " + here + ": hello"; !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	})
	for what, mode := range map[string]sandbox.NetworkMode{"loopback": sandbox.NetworkLoopback, "none": sandbox.NetworkNone} {
		t.Run(what, func(t *testing.T) {
			if got, _ := fetchIn(t, sandbox.Network{Mode: mode}, here); strings.Contains(got, "hello") {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("hosts", func(t *testing.T) {
		closed := httptest.NewServer(http.HandlerFunc(hello))
		defer closed.Close()
		opened := strings.TrimPrefix(named, "http://")
		got, refused := fetchIn(t, sandbox.Network{Mode: sandbox.NetworkHosts, Hosts: []string{opened}},
			named, here, closed.URL, "https://other.example/", "https://"+opened)
		for _, want := range []string{
			"proxy " + named + ": hello " + opened + "\n",
			"proxy " + here + ": the sandbox does not allow connections to " + strings.TrimPrefix(here, "http://") + "\n",
			"proxy https://other.example/: refused\n",
			"proxy https://" + opened + ": no connection\n", // allowed, but the server does not speak TLS
			"direct " + named + ": hello " + opened + "\n",  // the port is open on the program's own loopback
			"direct " + here + ": hello",
			"direct " + closed.URL + ": no connection\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
		if want := []string{strings.TrimPrefix(here, "http://"), strings.TrimPrefix(closed.URL, "http://"), "other.example:443"}; !slices.Equal(refused, want) {
			t.Errorf("refused %q, want %q", refused, want)
		}
	})
	t.Run("hosts, TLS", func(t *testing.T) {
		secure := httptest.NewTLSServer(http.HandlerFunc(hello))
		defer secure.Close()
		p := newPlace(t)
		profile := p.profile()
		profile.Network = sandbox.Network{Mode: sandbox.NetworkHosts, Hosts: []string{strings.TrimPrefix(secure.URL, "https://")}}
		got := p.shell(t, profile, `command -v curl >/dev/null || { echo hello; exit; }; curl --noproxy "" -sSk `+secure.URL)
		if !strings.HasPrefix(got, "hello") {
			t.Errorf("%q", got)
		}
	})
}

// A program that joins the net namespace of another one reaches its servers, and nothing else more
// than without.
func TestJoinedLoopback(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	nets := make(chan *os.File, 1)
	first := p.profile()
	first.Network.Share = func(net *os.File) { nets <- net }
	server, err := process.Start(process.Spec{
		Argv: []string{"python3", "-c", "import socket\ns = socket.create_server(('127.0.0.1', 8123))\nprint('ready', flush=True)\nwhile True: s.accept()[0].close()"},
		Env:  p.environ(), Dir: p.workspace, Confine: &first,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(0, 0)
	if _, err := io.ReadFull(server.Stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	ask := `python3 -c "import socket; socket.create_connection(('127.0.0.1', 8123)); print('reached')" 2>&1 | tail -n 1; ` +
		`grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; set -- /proc/[0-9]*; echo $#; ls -a "$HOME"; ls "$HOME/.ssh" 2>&1; ` +
		`touch ` + p.home + `/new 2>&1; touch new; rm new; kill -0 ` + strconv.Itoa(server.PID()) + ` 2>&1; ls /proc/self/fd | wc -l`
	second := p.profile()
	alone := p.shell(t, second, ask)
	second.Network.Join = <-nets
	joined := p.shell(t, second, ask)
	refused, limits, _ := strings.Cut(alone, "\n")
	if !strings.Contains(refused, "refused") || joined != "reached\n"+limits {
		t.Errorf("alone:\n%s\njoined:\n%s", alone, joined)
	}
}
