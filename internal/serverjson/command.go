package serverjson

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// runner is a program that gets packages of one type and runs them. Its expressions are compiled on
// first use, because most runs of toolreg use none.
type runner struct {
	programs   []string // accepted as hints; the first one that is installed is used
	others     []string // also accepted as hints: parts of what programs do
	identifier string   // expression for the name of a package
	version    string   // expression for an exact version
	registries []string // that the program uses by itself
	source     string   // option for another registry
	// options are those that a publisher may give. None of them chooses a package or a registry;
	// = ends those with a value.
	options []string
	before  []string // arguments before the options
	after   []string // arguments between the package and its own
	join    string   // between package and version
}

// runnerOf returns the runner for a type of packages; nil if there is none.
func runnerOf(kind string) *runner {
	switch kind {
	case "npm":
		return &runner{
			programs: []string{"npx"}, others: []string{"node", "npm"},
			before: []string{"-y"}, join: "@", source: "--registry",
			identifier: `^(@[A-Za-z0-9][A-Za-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*$`,
			version:    `^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`,
			registries: []string{"", "https://registry.npmjs.org"},
			options:    []string{"-y", "--yes", "-q", "--quiet", "--prefer-offline", "--prefer-online"},
		}
	case "pypi":
		return &runner{
			programs: []string{"uvx"}, others: []string{"python", "python3", "pip", "uv"},
			join: "==", source: "--default-index",
			identifier: `^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._,-]+\])?$`,
			version:    `^[0-9]+([.!+_-]?[0-9A-Za-z]+)*$`,
			registries: []string{"", "https://pypi.org", "https://pypi.org/simple"},
			options: []string{"-q", "--quiet", "-p=", "--python=",
				"--prerelease=", "--isolated", "--no-cache", "--refresh"},
		}
	case "nuget":
		return &runner{
			programs: []string{"dnx"}, others: []string{"dotnet"},
			join: "@", source: "--source", after: []string{"--yes", "--"},
			identifier: `^[A-Za-z0-9_][A-Za-z0-9_.-]*$`,
			version:    `^[0-9]+(\.[0-9]+){1,3}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`,
			registries: []string{"", "https://api.nuget.org", "https://api.nuget.org/v3/index.json"},
			options:    []string{"-y", "--yes", "--prerelease", "--allow-roll-forward", "-v=", "--verbosity="},
		}
	case "oci":
		return &runner{
			programs: []string{"docker", "podman"}, before: []string{"run", "-i", "--rm"},
			identifier: `^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$`,
			options: []string{
				"-i", "--interactive", "--rm", "--init", "-e=", "--env=", "-v=", "--volume=", "--mount=",
				"--tmpfs=", "--read-only", "-p=", "--publish=",
				"--network=", "--net=", "--add-host=", "--dns=", "--name=", "--hostname=", "-h=", "-l=",
				"--label=", "-u=", "--user=", "-w=", "--workdir=", "--entrypoint=",
				"--platform=", "--pull=", "-m=", "--memory=", "--cpus=", "--pids-limit=", "--shm-size=",
				"--ulimit=", "--gpus=", "--cap-drop=", "--stop-timeout=", "--log-driver=",
			},
		}
	}
	return nil
}

// opening are the options of docker and podman that give a container files or the network of
// this machine.
var opening = []string{"-v", "--volume", "--mount", "--network", "--net"}

// advice says how to run a server that cannot be translated.
const advice = "read its documentation and add it with toolreg servers add NAME -- COMMAND"

func (b *builder) command(p *Package) error {
	r := runnerOf(p.Type)
	switch {
	case p.Type == Bundle:
		return b.bundle(p)
	case p.Type == "cargo":
		return Refuse("cargo install "+text.Escape(p.Identifier)+
			", then toolreg servers add NAME -- "+text.Escape(p.Identifier),
			"packages of cargo have to be installed before they are run")
	case r == nil:
		return Refuse(advice, "packages of type %s are not supported", text.Quote(p.Type))
	case p.Transport.Type != "stdio" && p.Transport.Type != "":
		return Refuse("start it yourself and add it with toolreg servers add NAME --url URL",
			"its package serves %s at an address instead of stdio", text.Escape(p.Transport.Type))
	case !matches(r.identifier, p.Identifier):
		return Refuse("", "%s is not the name of a package of type %s", text.Quote(p.Identifier), p.Type)
	}
	program, err := r.program(p, b.opts.Has)
	if err != nil {
		return err
	}
	if slices.Contains(r.others, p.RuntimeHint) {
		b.Notes = append(b.Notes,
			fmt.Sprintf("its publisher names %s to run it; %s gets the package and runs it", p.RuntimeHint, program))
	}
	name, err := r.exact(p)
	if err != nil {
		return err
	}
	words := slices.Clone(r.before)
	if base := strings.TrimSuffix(p.BaseURL, "/"); p.Type != "oci" && !slices.Contains(r.registries, base) {
		if err := checkRemote(base); err != nil {
			return err
		}
		words = append(words, r.source+"="+Literal(base))
		b.Notes = append(b.Notes, "its package comes from another registry: "+text.Escape(base))
	}
	options, err := b.options(r, p)
	if err != nil {
		return err
	}
	words = append(words, options...)
	if err := b.variables(p); err != nil {
		return err
	}
	if p.Type == "oci" {
		for _, v := range b.Env {
			words = append(words, "-e", v.Name)
		}
	}
	args, err := b.arguments(p.PackageArguments)
	if err != nil {
		return err
	}
	words = append(append(words, name), r.after...)
	if len(args) == 0 && len(r.after) > 0 { // nothing comes after the --
		words = words[:len(words)-1]
	}
	b.Command, b.Args = program, append(words, args...)
	b.noteSecrets()
	return nil
}

// bundle plans a bundle. If it has not been read yet, only its address is checked.
func (b *builder) bundle(p *Package) error {
	if p.Command == "" {
		if p.SHA256 == "" {
			return Refuse("", "its bundle %s has no SHA-256", text.Quote(p.Identifier))
		}
		return checkRemote(p.Identifier)
	}
	args, err := b.arguments(p.PackageArguments)
	if err != nil {
		return err
	}
	b.Command, b.Args = Literal(p.Command), args
	b.noteSecrets()
	return b.variables(p)
}

// variables adds the variables of the environment.
func (b *builder) variables(p *Package) error {
	pairs, err := b.pairs(p.variables())
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		if slices.ContainsFunc(b.Env, func(have Pair) bool { return have.Name == pair.Name }) {
			return Refuse("", "variable %s occurs twice", pair.Name)
		}
		b.Env = append(b.Env, pair)
	}
	return nil
}

func (b *builder) noteSecrets() {
	if slices.ContainsFunc(b.inputs,
		func(in Input) bool { return in.Argument && in.Secret && len(b.given[in.Name]) > 0 }) {
		b.Notes = append(b.Notes,
			"a secret is an argument, which every program of this machine can see in the list of processes")
	}
}

func (r *runner) program(p *Package, has func(string) bool) (string, error) {
	if p.RuntimeHint != "" && !slices.Contains(r.others, p.RuntimeHint) {
		if !slices.Contains(r.programs, p.RuntimeHint) {
			return "", Refuse(advice,
				"it wants to be run by %s, which is not supported for packages of type %s; supported is %s",
				text.Quote(p.RuntimeHint), p.Type, strings.Join(r.programs, " or "))
		}
		if len(r.programs) == 1 || has(p.RuntimeHint) {
			return p.RuntimeHint, nil
		}
	}
	if i := slices.IndexFunc(r.programs, has); i > 0 {
		return r.programs[i], nil
	}
	return r.programs[0], nil
}

// exact returns the package with its version. It refuses versions that are not exact.
func (r *runner) exact(p *Package) (string, error) {
	if p.Type != "oci" {
		if !matches(r.version, p.Version) {
			return "", Refuse("", "version %s of package %s is not exact", text.Quote(p.Version), p.Identifier)
		}
		return p.Identifier + r.join + p.Version, nil
	}
	identifier, err := imageOf(p)
	if err != nil {
		return "", err
	}
	image, digest, pinned := strings.Cut(identifier, "@")
	tag := ""
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		image, tag = image[:at], image[at+1:]
	}
	switch {
	case pinned && !matches(r.identifier, image+"@"+digest):
		return "", Refuse("", "%s is not the name of an image", text.Quote(identifier))
	case pinned:
		return image + "@" + digest, nil
	case tag == "" && p.Version != "":
		tag = p.Version
	}
	name := image + ":" + tag
	if tag == "" || tag == "latest" || !matches(r.identifier, name) {
		return "", Refuse("", "image %s has neither a digest nor an exact tag", text.Quote(p.Identifier))
	}
	return name, nil
}

// imageOf returns the name of an image with the host of its registry, which earlier schemas have
// in registryBaseUrl.
func imageOf(p *Package) (string, error) {
	if p.BaseURL == "" {
		return p.Identifier, nil
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Host == "" || u.User != nil {
		return "", Refuse("", "%s is not the address of a registry", text.Quote(p.BaseURL))
	}
	first, _, nested := strings.Cut(p.Identifier, "/")
	isHost := nested && (strings.ContainsAny(first, ".:") || first == "localhost")
	if isHost || slices.Contains([]string{"docker.io", "hub.docker.com",
		"index.docker.io", "registry-1.docker.io"}, u.Host) {
		return p.Identifier, nil
	}
	return u.Host + "/" + p.Identifier, nil
}

// options returns the options of the program that runs the package. Each is one word, so that
// its value cannot be taken for the package.
func (b *builder) options(r *runner, p *Package) ([]string, error) {
	var out []string
	for _, piece := range p.options() {
		name := piece.arg.Name
		values, isVariable := b.values(piece), piece.isVariable()
		if piece.arg.Type != "named" { // many publishers write options as positional arguments
			if len(values) != 1 || len(values[0]) != 1 || values[0][0].text != piece.value.Value {
				return nil, Refuse(advice,
					"%s is not an option; it could be taken for the package", text.Escape(piece.label))
			}
			name, values = piece.value.Value, nil
			if name == "run" && p.Type == "oci" && len(out) == 0 {
				continue
			}
			if option, value, ok := strings.Cut(name, "="); ok {
				name, values, isVariable = option, [][]part{{{text: value}}}, option == "-e" || option == "--env"
			}
		}
		takesValue := slices.Contains(r.options, name+"=")
		if !takesValue && !slices.Contains(r.options, name) {
			return nil, Refuse(advice, "option %s of %s, which it wants, is not allowed",
				text.Quote(name), r.programs[0])
		}
		if len(values) == 0 {
			if piece.arg.Type == "named" && !piece.isSwitch() {
				continue // a value in it was not given
			}
			if takesValue {
				return nil, Refuse(advice, "option %s of %s has no value; it would take the package for it",
					text.Quote(name), r.programs[0])
			}
			if !slices.Contains(slices.Concat(r.before, r.after), name) &&
				!slices.Contains([]string{"--yes", "--interactive"}, name) {
				out = append(out, name)
			}
			continue
		}
		for _, parts := range values {
			if isVariable {
				if err := b.containerVariable(parts); err != nil {
					return nil, err
				}
				continue
			}
			value, err := b.notation(piece, parts)
			if err != nil {
				return nil, err
			}
			if !takesValue && value != "true" && value != "false" { // npx would take it for the package
				return nil, Refuse(advice, "option %s of %s takes no value", text.Quote(name), r.programs[0])
			}
			if slices.Contains(opening, name) {
				b.Notes = append(b.Notes,
					"its container gets more than its own files: "+name+"="+text.Escape(Denote(value)))
			}
			out = append(out, name+"="+value)
		}
	}
	return out, nil
}

// containerVariable adds a variable of a container that is written as the option -e NAME=VALUE.
// Its value is passed in the environment instead of the command line.
func (b *builder) containerVariable(parts []part) error {
	name, rest, ok := strings.Cut(parts[0].text, "=")
	if !ok || parts[0].isRef {
		return Refuse("", "the name of a variable of its container is not fixed")
	}
	p := piece{name: name, label: "variable " + name}
	p.isOption = true // the publisher has written at least a part of the value
	if err := b.checkVariable(p); err != nil {
		return err
	}
	parts = slices.Clone(parts)
	parts[0].text = rest
	if rest == "" && len(parts) > 1 {
		parts = parts[1:]
	}
	value, ok, err := b.pairValue(p, parts)
	if err == nil && ok {
		b.Env = append(b.Env, Pair{p.name, value})
	}
	return err
}

func (b *builder) arguments(list []Argument) ([]string, error) {
	var out []string
	for _, p := range argumentPieces(list, "argument") {
		named := p.arg.Type == "named"
		if named && (p.arg.Name == "" || strings.ContainsAny(p.arg.Name, " \t\r\n\x00")) {
			return nil, Refuse("", "%s is not the name of an argument", text.Quote(p.arg.Name))
		}
		if p.isSwitch() {
			out = append(out, Literal(p.arg.Name))
			continue
		}
		for _, parts := range b.values(p) {
			value, err := b.notation(p, parts)
			if err != nil {
				return nil, err
			}
			if strings.ContainsAny(value, "\x00") {
				return nil, Refuse("", "%s contains a NUL", text.Escape(p.label))
			}
			switch {
			case !named && value != "":
				out = append(out, value)
			case !named:
			case p.value.Format == "boolean" && value == "false":
			case p.value.Format == "boolean" && value == "true" || value == "":
				out = append(out, Literal(p.arg.Name))
			default:
				out = append(out, Literal(p.arg.Name), value)
			}
		}
	}
	return out, nil
}

// Plan translates a way to run a server, with the values that are given. The error is
// one of [Refuse] or a [*ValueError].
func (w Way) Plan(given Given, o Options) (*Plan, error) {
	b := &builder{Plan: &Plan{}, given: given, opts: o, inputs: w.Inputs()}
	if w.Package != nil {
		b.within = w.Package.Folder
	}
	if len(w.pieces()) > maxValues {
		return nil, Refuse("", "it has more than %d arguments, variables and headers", maxValues)
	}
	if err := b.checkGiven(); err != nil {
		return nil, err
	}
	if w.Remote != nil {
		return b.Plan, b.remote(w.Remote)
	}
	for _, p := range w.Package.variables() {
		if err := b.checkVariable(p); err != nil {
			return nil, err
		}
	}
	return b.Plan, b.command(w.Package)
}
