// Command registry runs toolreg against the program of the official MCP registry: it starts
// PostgreSQL and the registry with its own seed data, publishes entries.json, which has an
// entry of every kind of package and oddity, and finds, adds and upgrades servers as a person
// would. With -record it writes what the registry answers about entries.json for the tests.
//
// It is a module of its own, so that the registry is not part of the program. It needs
// Debian's postgresql, and the servers of testdata/npm as the package that is run.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	toolreg := flag.String("toolreg", "../../bin/toolreg", "the `program` to run")
	record := flag.String("record", "", "write the answers about entries.json to `FILE`")
	flag.Parse()
	program, err := filepath.Abs(*toolreg)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "toolreg-registry-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	database, stop, err := startPostgres(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	address, end, err := startRegistry(ctx, folder, database)
	if err != nil {
		return err
	}
	defer end()
	data, err := os.ReadFile("entries.json")
	if err != nil {
		return err
	}
	var entries []map[string]any
	if err := json.Unmarshal(data, &entries); err != nil {
		return fmt.Errorf("entries.json: %w", err)
	}
	if *record != "" { // the seed data is not recorded
		if err := publish(ctx, address, entries); err != nil {
			return err
		}
		return recordAnswers(ctx, address, *record)
	}
	p := &person{program: program, folder: folder, registry: address}
	if err := p.settle(); err != nil {
		return err
	}
	return p.tour(ctx, entries)
}

// startPostgres starts PostgreSQL on a free port, as the user postgres if this is root.
func startPostgres(ctx context.Context, folder string) (url string, stop func() error, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", nil, errors.New("PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	bin, data := filepath.Dir(found[len(found)-1]), filepath.Join(folder, "database")
	if err := os.Mkdir(data, 0o700); err != nil {
		return "", nil, err
	}
	as := func(words ...string) error {
		if os.Getuid() == 0 {
			words = append([]string{"runuser", "-u", "postgres", "--"}, words...)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir = "/"
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
		}
		return nil
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chmod(folder, 0o755),
			exec.CommandContext(ctx, "chown", "postgres", data).Run()); err != nil {
			return "", nil, err
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	cluster := filepath.Join(data, "cluster")
	if err := as(filepath.Join(bin, "initdb"), "-D", cluster, "-A", "trust", "-U", "postgres"); err != nil {
		return "", nil, err
	}
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c fsync=off", port, data)
	if err := as(filepath.Join(bin, "pg_ctl"), "-D", cluster, "-o", options,
		"-l", filepath.Join(data, "log"), "-w", "start"); err != nil {
		return "", nil, err
	}
	stop = func() error {
		ctx = context.WithoutCancel(ctx)
		return as(filepath.Join(bin, "pg_ctl"), "-D", cluster, "-m", "immediate", "-w", "stop")
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), stop, nil
}

// startRegistry builds the registry and starts it.
func startRegistry(ctx context.Context, folder, database string) (address string, end func(), err error) {
	const module = "github.com/modelcontextprotocol/registry"
	program := filepath.Join(folder, "registry")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program,
		module+"/cmd/registry").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("building the registry: %w\n%s", err, out)
	}
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return "", nil, err
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.CommandContext(ctx, program)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), "MCP_REGISTRY_SERVER_ADDRESS="+host, "MCP_REGISTRY_DATABASE_URL="+database,
		"MCP_REGISTRY_SEED_FROM="+filepath.Join(strings.TrimSpace(string(source)), "data", "seed.json"),
		"MCP_REGISTRY_JWT_PRIVATE_KEY="+hex.EncodeToString(key[:]),
		// Packages are not looked up on the network.
		"MCP_REGISTRY_ENABLE_ANONYMOUS_AUTH=true", "MCP_REGISTRY_ENABLE_REGISTRY_VALIDATION=false")
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for range 100 {
		if resp, err := http.Get("http://" + host + "/v0.1/health"); err == nil {
			resp.Body.Close()
			return "http://" + host, end, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	end()
	return "", nil, fmt.Errorf("the registry does not start:\n%s", log.Bytes())
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// namespace is that of anonymous publishers.
const namespace = "io.modelcontextprotocol.anonymous/"

// token is that of an anonymous publisher.
func token(ctx context.Context, address string) (string, error) {
	var answer struct {
		Token string `json:"registry_token"`
	}
	err := send(ctx, http.MethodPost, address+"/v0.1/auth/none", "", struct{}{}, &answer)
	return answer.Token, err
}

func publish(ctx context.Context, address string, entries []map[string]any) error {
	key, err := token(ctx, address)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		entry["$schema"] = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
		if err := send(ctx, http.MethodPost, address+"/v0.1/publish", key, entry, nil); err != nil {
			return fmt.Errorf("publishing %v: %w", entry["name"], err)
		}
	}
	return nil
}

func setStatus(ctx context.Context, address, name, version, status, message string) error {
	key, err := token(ctx, address)
	if err != nil {
		return err
	}
	path := "/v0.1/servers/" + strings.ReplaceAll(name, "/", "%2F") + "/versions/" + version + "/status"
	return send(ctx, http.MethodPatch, address+path, key,
		map[string]string{"status": status, "statusMessage": message}, nil)
}

func send(ctx context.Context, method, url, key string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// recordAnswers writes the registry's answer about the entries of anonymous publishers.
func recordAnswers(ctx context.Context, address, file string) error {
	var page any
	if err := send(ctx, http.MethodGet,
		address+"/v0.1/servers?limit=100&search="+namespace, "", nil, &page); err != nil {
		return err
	}
	data, err := json.MarshalIndent(page, "", "    ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// person runs toolreg as a person would.
type person struct {
	program, folder, registry string
	failed                    int
}

// settle makes a home folder with settings, and a npx that runs a server of testdata/npm.
func (p *person) settle() error {
	server, err := filepath.Abs("../../testdata/npm/node_modules/.bin/mcp-server-memory")
	if err == nil {
		_, err = os.Stat(server)
	}
	if err != nil {
		return fmt.Errorf("%w; make npm installs it", err)
	}
	for name, text := range map[string]string{
		"home/config/toolreg/settings.yaml": "registries: [" + p.registry + "]\n",
		"project/.git/keep":                 "",
		"bin/npx":                           "#!/bin/sh\ncase \"$*\" in *@9.*) exit 1;; esac\nexec " + server + "\n",
	} {
		path := filepath.Join(p.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// toolreg runs a command without a terminal and compares its exit code. said must all be in
// what it prints.
func (p *person) toolreg(ctx context.Context, exit int, args []string, said ...string) string {
	home := filepath.Join(p.folder, "home")
	cmd := exec.CommandContext(ctx, "setsid", append([]string{"-w", p.program}, args...)...)
	cmd.Dir = filepath.Join(p.folder, "project")
	cmd.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"),
		"XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"XDG_DATA_HOME=" + filepath.Join(home, "data"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"PATH=" + filepath.Join(p.folder, "bin") + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	got := 0
	if failure, ok := errors.AsType[*exec.ExitError](err); ok {
		got = failure.ExitCode()
	} else if err != nil {
		got = -1
	}
	isMissing := slices.ContainsFunc(said, func(text string) bool { return !strings.Contains(string(out), text) })
	mark := "ok  "
	if got != exit || isMissing {
		mark, p.failed = "FAIL", p.failed+1
	}
	fmt.Printf("%s %d toolreg %s\n", mark, got, strings.Join(args, " "))
	if mark == "FAIL" {
		fmt.Printf("want exit code %d and %q in\n%s\n", exit, said, out)
	}
	return string(out)
}

// tour finds, adds and upgrades servers.
func (p *person) tour(ctx context.Context, entries []map[string]any) error {
	const memory = namespace + "memory"
	words := func(line string) []string { return strings.Fields(strings.ReplaceAll(line, "N/", namespace)) }
	if err := publish(ctx, p.registry, entries[:1]); err != nil {
		return err
	}
	p.toolreg(ctx, 0, words("servers find airtable"), "io.github.domdomegg/airtable-mcp-server", "AIRTABLE_API_KEY")
	p.toolreg(ctx, 0, words("servers find mcp pypi"), "time-mcp-pypi\t")
	p.toolreg(ctx, 0, words("servers add N/memory --yes --set MEMORY_FILE_PATH=memory.json"), `server "memory" works`)
	p.toolreg(ctx, 0, words("servers outdated"), "none of which is outdated")
	if err := publish(ctx, p.registry, entries[1:]); err != nil {
		return err
	}
	p.toolreg(ctx, 0, words("servers outdated"), "memory\t2025.8.4\t2025.9.25\tactive")
	p.toolreg(ctx, 6, words("servers upgrade memory"), "server-memory@2025.9.25")
	p.toolreg(ctx, 0, words("servers upgrade memory --yes"), "no definition changes", `upgraded server "memory"`)
	p.toolreg(ctx, 0, words("servers upgrade memory --yes"), "up to date")
	broken := map[string]any{"name": memory, "description": "Does not start",
		"version": "2026.1.0", "packages": []any{map[string]any{"registryType": "npm",
			"identifier": "@modelcontextprotocol/server-memory",
			"version":    "9.0.0", "transport": map[string]any{"type": "stdio"}}}}
	if err := publish(ctx, p.registry, []map[string]any{broken}); err != nil {
		return err
	}
	p.toolreg(ctx, 8, words("servers upgrade memory --yes"), "stays at 2025.9.25")
	for exit, status := range []string{0: "deprecated", 5: "deleted"} {
		if status == "" {
			continue
		}
		if err := setStatus(ctx, p.registry, namespace+"tenants", "1.2.0", status, "moved"); err != nil {
			return err
		}
		p.toolreg(ctx, exit,
			words("servers add N/tenants --yes --no-test --set tenant=a --set token=env:TOKEN --as "+status),
			status, "moved")
	}
	for _, one := range []struct {
		exit int
		line string
		said string
	}{
		{0, "N/everything-else --as npm --runtime npm --set --mode=local --set folder=/a --set folder=/b --set ELSE_TOKEN=s3cret", "npx -y @example/else@1.0.0 mcp --port 3000 --mode local /a /b"},
		{0, "N/everything-else --as pypi --runtime pypi", "uvx --python=3.12 example-else==1.0.0"},
		{0, "N/everything-else --as oci --runtime oci --set db_type=mysql --set ELSE_TOKEN=env:X", "run -i --rm -e DB_TYPE -e ELSE_TOKEN docker.io/example/else:1.0.0"},
		{0, "N/everything-else --as nuget --runtime nuget", "dnx Example.Else@1.0.0-beta --yes -- mcp start"},
		{4, "N/everything-else --as x --runtime oci --set db_type=x", "postgres, mysql"},
		{6, "N/everything-else --as x", "--runtime npm|pypi|oci|nuget|mcpb"},
		{5, "N/cargo", "cargo install widget-mcp"}, {5, "N/listens", "instead of stdio"},
		{5, "N/smuggles --runtime npm", "-c"}, {5, "N/smuggles --runtime oci", "--privileged"},
		{5, "N/website", "neither a package nor an address"}, {3, "N/nothing", "no server"},
		{3, "N/cargo@7.0.0", "no version"}, {2, "N/cargo/x", "not the name"},
	} {
		p.toolreg(ctx, one.exit, words("servers add --yes --no-test "+one.line), one.said)
	}
	p.toolreg(ctx, 0, words("servers find smuggles"), "npm, oci")
	if p.failed > 0 {
		return fmt.Errorf("%d of the commands did not do what was expected", p.failed)
	}
	return nil
}
