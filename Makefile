# Thin on purpose: every target is one or two commands that also work by hand.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
SOAK ?= 10000
REPLICAS ?= 10000
SESSIONS ?= 1000
SHELL_LINES ?= 500000
OPTION_LINES ?= 100000
# The programs whose options make fuzz-shell tries, where the machine does not have them.
OPTION_PACKAGES := bash bc bsdextrautils busybox bzip2 cargo clang-format black curl dash diffutils bind9-dnsutils fd-find file findutils gawk gh git golang-golang-x-tools gzip iproute2 iputils-ping jq \
	libarchive-tools libxml2-utils locales lsof make man-db mawk mypy net-tools netcat-openbsd openssl original-awk patch perl php-cli procps python3-pip python3-pytest ripgrep rsync ruby sed \
	silversearcher-ag tar tree unzip util-linux xxd xz-utils yq zip
TOOL := go tool -modfile=tools/staticcheck.mod
GORELEASER := go tool -modfile=tools/goreleaser.mod goreleaser
NPM := testdata/npm
# A module of its own: it reads what toolreg prints into the providers' SDKs. Optimizing
# the two largest SDKs would take longer than all its tests.
PROVIDERS := testdata/providers
UNOPTIMIZED := $(foreach sdk,anthropics/anthropic-sdk-go openai/openai-go/v3,-gcflags='github.com/$(sdk)/...=-N -l -dwarf=false')
CONFORMANCE := testdata/conformance
CLIENTS := testdata/clients
TOKENS := testdata/tokens
# A module of its own: published OpenAPI documents and a library that reads them too.
OPENAPI := tools/openapi
# goreleaser takes commit and date from git only if it knows a remote.
REMOTE = $(shell git remote get-url origin >/dev/null 2>&1 || echo GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/toolreg/toolreg)
# A module of its own: licenses and bills of materials for packages.
RELEASE := tools/release
# The race detector needs a C compiler; go says 0 where there is none.
RACE = $(shell test "$$(go env CGO_ENABLED)" = 1 && echo -race)

TESTFLAGS := -timeout 30m
# The packages that run the most side by side.
RACED := $(addprefix ./internal/,serve/... mcpclient/wire process script)
# Everything that is built for the tests is built without data for debuggers, which would
# take a sixth of the time, by a compiler that collects garbage only when it has used much
# memory, which takes a fifth.
test race race-short: export GOFLAGS := $(shell go env GOFLAGS) '-ldflags=-s -w' -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=800MiB'
# With the race detector a program sleeps for a second before it exits.
race race-short: export GORACE = atexit_sleep_ms=0

.DEFAULT_GOAL := help
.PHONY: help build man docs test race conformance demo lint page tokens site bench benchtools benchservers benchserve benchsandbox fuzz fuzz-shell mutants soak replicas clean programs
.PHONY: share vulns release release-snapshot release-compare release-test

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/toolreg, one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid= -X main.version=$(VERSION)" -o bin/toolreg ./cmd/toolreg

man: ## write the man pages to bin/man
	rm -rf bin/man
	go run ./tools/reference -version $(VERSION) -date "$$(TZ=UTC0 git log -1 --date=format-local:%Y-%m-%d --format=%cd 2>/dev/null)" man bin/man

docs: ## write the generated parts of the README and of the pages in docs
	go run ./tools/reference docs

site: ## write the documentation as a web site to bin/site; open bin/site/index.html
	rm -rf bin/site
	go run ./tools/site bin/site

share: build man ## write completions, compressed man pages and licenses to bin/share, for packages
	rm -rf bin/share && mkdir -p bin/share/completions && cp -r bin/man bin/share/man
	find bin/share/man -type f -exec gzip -9n {} +
	for shell in bash zsh fish powershell; do bin/toolreg completion $$shell >bin/share/completions/toolreg.$$shell || exit 1; done
	mv bin/share/completions/toolreg.powershell bin/share/completions/toolreg.ps1
	cd $(RELEASE) && go build -o ../../bin/release .
	bin/release licenses >bin/share/THIRD-PARTY-LICENSES.txt

# The two packages that wait the longest come first.
test: $(NPM)/node_modules/.package-lock.json programs ## install what the tests need, check format, test
	@unformatted=$$(gofmt -l cmd internal tools $(PROVIDERS) testdata/servers) && test -z "$$unformatted" || { echo "run gofmt -w on: $$unformatted" >&2; exit 1; }
	go test $(TESTFLAGS) -vet=off -p "$$(($$(getconf _NPROCESSORS_ONLN) + 1))" -parallel 3 ./cmd/toolreg $(or $(PACKAGES),./internal/serve ./...) </dev/null

race: programs $(NPM)/node_modules/.package-lock.json ## run all tests with the race detector (half an hour)
	go test $(TESTFLAGS) -timeout 1h -vet=off -race ./... </dev/null

# Beside race-short, test leaves out the packages that are tested there, and what takes the longest to
# compile is compiled while npm waits for the network.
ifneq ($(filter race-short,$(MAKECMDGOALS)),)
test: PACKAGES = $(shell go list ./... | grep -vxF "$$(go list $(RACED))")
test: compiled
endif

.PHONY: compiled
compiled:
	go build ./cmd/toolreg ./internal/serve

.PHONY: race-short providers
# Without inlining all that is built with the race detector takes an eighth less to compile.
race-short: programs $(NPM)/node_modules/.package-lock.json ## run the tests of the packages that run the most side by side with the race detector (minutes)
	go test $(TESTFLAGS) -vet=off $(RACE) -gcflags=all='-l -dwarf=false' $(RACED) </dev/null

providers: ## read what toolreg prints with the SDKs of the model providers, and the other way round (compiles them: two minutes)
	cd $(PROVIDERS) && go test -vet=off -count=1 $(UNOPTIMIZED) ./... </dev/null

conformance: build $(CONFORMANCE)/node_modules/.package-lock.json ## run the public test suite for MCP clients and servers (240 MB to install)
	go build -o bin/conformance-adapter ./$(CONFORMANCE)/adapter
	go build -o bin/mcp-testserver ./$(CLIENTS)/testserver
	go build -o bin/everything-server github.com/modelcontextprotocol/go-sdk/conformance/everything-server
	$(CONFORMANCE)/run.sh

.PHONY: clients
clients: build $(CLIENTS)/node_modules/.package-lock.json $(NPM)/node_modules/.package-lock.json ## let other programs use toolreg serve and print what works (315 MB to install)
	go build -o bin/mcp-testserver ./$(CLIENTS)/testserver
	go build -o bin/gosdk ./$(CLIENTS)/gosdk
	$(CLIENTS)/run.sh

.PHONY: compare
compare: build $(CLIENTS)/node_modules/.package-lock.json $(NPM)/node_modules/.package-lock.json ## do the same with toolreg and programs like it and print what each did (builds three of them: 2 GB of modules)
	go build -o bin/sdkclient ./testdata/bench/sdkclient
	testdata/compare/run.sh

demo: build ## run the sample project
	testdata/sample/run.sh

lint: ## vet, here and for other systems, staticcheck, actionlint, tidy go.mod, licenses
	go vet ./...
	$(TOOL) staticcheck ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	go mod tidy -diff
	cd $(PROVIDERS) && go mod tidy -diff && go vet ./...
	cd $(RELEASE) && go mod tidy -diff && go vet ./... && go test -short -count=1 ./...
	cd $(OPENAPI) && go mod tidy -diff && go vet ./...

vulns: ## look for known vulnerabilities in what the program calls (needs a network)
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

page: build $(NPM)/node_modules/.package-lock.json ## test what needs Chromium: a kept browser, the search of the site, the console, and the pages of list --html and stats --html (installs chromium: 300 MB)
	@command -v chromium >/dev/null || apt-get install -y -q chromium </dev/null >&2
	TOOLREG_PICTURE=$(CURDIR)/bin/console.png go test -count=1 -run '^TestBrowser$$|^TestChartsInBrowser$$|^TestConsole|^TestSearch$$|^TestScripts$$/^npm_browser$$' ./internal/ui/page ./tools/site ./cmd/toolreg
	bin/toolreg list --html bin/tools.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1000 --screenshot=bin/tools.png bin/tools.html

.PHONY: openapi
openapi: build $(OPENAPI)/node_modules/.package-lock.json ## read published OpenAPI documents and call their operations at a mock server (900 MB to install; half an hour)
	cd $(OPENAPI) && go run . -toolreg ../../bin/toolreg -prism

.PHONY: registry
registry: build $(NPM)/node_modules/.package-lock.json ## find, add and upgrade servers of the official MCP registry's program (needs PostgreSQL; 10 s)
	cd tools/registry && go run . -toolreg ../../bin/toolreg

tokens: build ## count the tokens of declarations with real tokenizers, for the estimates (325 MB to install)
	npm ci --prefix $(TOKENS) --silent
	node $(TOKENS)/measure.mjs bin/toolreg

bench: benchservers benchserve benchtools ## run every benchmark; docs/development/benchmarks.md keeps the times of whole processes
	go test -run '^$$' -bench . -benchmem ./...

benchservers: build ## measure calls of MCP servers beside a client that does nothing else
	bash -o pipefail -c 'testdata/bench/servers.sh | testdata/bench/keep.sh servers'

benchserve: build ## measure calls through serve beside direct ones and a gateway on the bare Go SDK
	bash -o pipefail -c 'testdata/bench/serve.sh | testdata/bench/keep.sh serve'

benchtools: build ## compare the file tools with cat, sed and ripgrep
	bash -o pipefail -c 'testdata/bench/tools.sh | testdata/bench/keep.sh tools'

benchsandbox: ## measure what the sandbox adds to a start, beside bubblewrap (installs bubblewrap)
	@command -v bwrap >/dev/null || apt-get install -y -q bubblewrap </dev/null >&2
	CGO_ENABLED=0 go test -run '^$$' -bench '^BenchmarkStart$$' -benchtime 300x ./internal/sandbox

fuzz: programs ## run every fuzz target for FUZZTIME
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

fuzz-shell: ## run what rules allow of SHELL_LINES lines in real shells, and of OPTION_LINES calls of real programs (Debian: installs what is missing)
	apt-get install -y -q --no-install-recommends $(OPTION_PACKAGES) </dev/null >&2
	TOOLREG_SHELL_LINES=$(SHELL_LINES) TOOLREG_OPTION_LINES=$(OPTION_LINES) go test -count=1 -timeout 6h -v -run '^(TestShellsAgree|TestOptionsAreHarmless)$$' ./internal/policy/shell </dev/null

mutants: ## change the operators of the packages with testdata/mutants.txt, or of PACKAGES, and see that tests notice (minutes)
	go run ./tools/mutants $(PACKAGES)

soak: ## serve under SOAK client sessions, some broken off, with servers killed and settings reloaded; kept servers killed
	TOOLREG_SOAK=$(SOAK) go test -count=1 -timeout 1h -v -run '^(TestNothingIsLeft|TestReloadLosesNoCall|TestNothingOutlivesItsClient|TestKeptServersAreKilled)$$' ./internal/serve ./cmd/toolreg </dev/null

replicas: ## make REPLICAS calls to three replicas behind HAProxy, and with a store in SESSIONS sessions, while they, or the store, are ended and killed (installs haproxy, redis-server)
	@command -v haproxy >/dev/null && command -v redis-server >/dev/null || apt-get install -y -q haproxy redis-server </dev/null >&2
	TOOLREG_REPLICAS=$(REPLICAS) TOOLREG_SESSIONS=$(SESSIONS) go test -count=1 -timeout 30m -v -run '^TestReplicas' ./cmd/toolreg </dev/null

release: ## build the release of the checked-out tag and publish it
	$(GORELEASER) release --clean

release-snapshot: ## build everything that a release consists of in bin/dist, without a network
	$(REMOTE) $(GORELEASER) release --snapshot --clean

release-compare: ## build the release twice, in two folders with two caches, and compare it (needs 5 GB for a while)
	tools/release/compare.sh

release-test: release-snapshot ## install the packages in a clean Debian, run the Windows program (needs root; installs 2 GB)
	tools/release/try.sh

.PHONY: test-windows
test-windows: ## run the tests of Windows by Wine, of PACKAGES or all (needs root; installs a Debian with Wine: 1.4 GB; a quarter of an hour)
	tools/windows/run.sh $(PACKAGES)

clean: ## remove what was built and installed
	rm -rf bin coverage.out $(NPM)/node_modules $(CONFORMANCE)/node_modules $(CLIENTS)/node_modules $(OPENAPI)/node_modules

# MCP servers from npm, exactly as locked; their install scripts are not run.
$(NPM)/node_modules/.package-lock.json: $(NPM)/package.json $(NPM)/package-lock.json
	cd $(NPM) && npm ci --ignore-scripts --no-audit --no-fund </dev/null
	@touch $@

# Clients, and the Node.js that they need.
$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package.json $(CLIENTS)/package-lock.json
	cd $(CLIENTS) && npm ci --ignore-scripts --no-audit --no-fund </dev/null
	@touch $@

# Documents and a mock server for them.
$(OPENAPI)/node_modules/.package-lock.json: $(OPENAPI)/package.json $(OPENAPI)/package-lock.json
	cd $(OPENAPI) && npm ci --ignore-scripts --no-audit --no-fund </dev/null
	@touch $@

# The suite, and the Node.js that it needs, which is newer than that of the tests.
$(CONFORMANCE)/node_modules/.package-lock.json: $(CONFORMANCE)/package.json $(CONFORMANCE)/package-lock.json
	cd $(CONFORMANCE) && npm ci --ignore-scripts --no-audit --no-fund </dev/null
	@touch $@

# The searching tools are compared with ripgrep, the policy with three shells; clients of
# serve connect through nginx and HAProxy; the examples use the others.
PROGRAMS := rg:ripgrep jq:jq curl:curl python3:python3 bash:bash dash:dash busybox:busybox zsh:zsh fish:fish mandoc:mandoc nginx:nginx-light haproxy:haproxy redis-server:redis-server
programs:
	@missing=; for p in $(PROGRAMS); do \
		command -v $${p%%:*} >/dev/null 2>&1 || missing="$$missing $${p#*:}"; \
	done; test -z "$$missing" || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
		{ apt-get install -y -q $$missing || { apt-get update -q && apt-get install -y -q $$missing; }; } </dev/null >&2; } || \
		echo "not installed, and wanted by tests:$$missing" >&2
