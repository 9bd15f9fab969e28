package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/expand"
)

// MaskKnown masks what is recognizable as a secret: tokens of known services, private
// keys in PEM, the user part of URLs, and the values of query parameters whose names
// indicate secrets, except variables ($NAME).
func MaskKnown(s string) string { return masker{}.known(s) }

// Text is MaskKnown for a text of the settings. It also masks distinctive values of query
// parameters, whatever their names are. Each secret is reported to found, which may be nil.
func Text(s string, found func(secret string)) string { return inSettings(found).known(s) }

// Line masks apparent secrets in a command line of the settings, except variables. Each secret is
// reported to found, which may be nil.
func Line(s string, found func(secret string)) string { return inSettings(found).text(s) }

// A masker masks secrets. Its zero value masks them in text from anywhere.
type masker struct {
	found    func(secret string) // called with each secret, unless it is nil
	settings bool                // the text is from the settings, where variables are expanded
}

func inSettings(found func(string)) masker { return masker{found, true} }

// report reports a secret, or the variable or reference that stands for one.
func (m masker) report(secret string) {
	if m.found != nil && secret != "" {
		m.found(secret)
	}
}

// mask reports a secret and returns what is shown in its place.
func (m masker) mask(secret string) string {
	m.report(secret)
	if m.settings && expand.IsVariable(secret) {
		return secret
	}
	return Masked
}

// source is mask for a whole value, of which [Source] is shown.
func (m masker) source(secret string) string {
	m.report(secret)
	return Source(secret)
}

func (m masker) known(s string) string {
	if strings.Contains(s, "://") {
		s = m.urls(s)
	}
	if len(s) <= tokenBody {
		return s
	}
	s = m.privateKeys(s)
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',;=&?|()[]{}<>", r) })
	for _, word := range words {
		if token(word) {
			s = strings.ReplaceAll(s, word, m.mask(word))
		}
	}
	return s
}

// text is known for free text, such as a shell command or a message. It also masks
// values whose names indicate secrets, as in "PASSWORD=x", "--token x" and
// "Authorization: Bearer x", and passwords as in "mysql -px".
func (m masker) text(s string) string { return m.known(m.short(m.assigned(s))) }

// privateKeys masks private keys in PEM. A key without an end line is masked to
// the end of the text.
func (m masker) privateKeys(s string) string {
	const begins, ends = "PRIVATE KEY-----", "-----END "
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, begins)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		i := strings.Index(after, ends)
		if i < 0 {
			b.WriteString(begins + m.mask(after))
			return b.String()
		}
		b.WriteString(begins + m.mask(after[:i]))
		label, rest, _ := strings.Cut(after[i:], begins)
		b.WriteString(label + begins)
		s = rest
	}
}

// urls masks all URLs in a text.
func (m masker) urls(s string) string {
	var b strings.Builder
	for {
		scheme, rest, found := strings.Cut(s, "://")
		b.WriteString(scheme)
		if !found {
			return b.String()
		}
		end := len(rest)
		if before, _, ok := strings.Cut(rest, "://"); ok {
			end = len(strings.TrimRightFunc(before, func(r rune) bool {
				return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+-.", r)
			}))
		}
		b.WriteString("://" + m.url(rest[:end]))
		s = rest[end:]
	}
}

// url masks what follows the scheme of a URL. It does not parse the URL,
// because it may contain variables.
func (m masker) url(rest string) string {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if _, password, ok := strings.Cut(authority[:at], ":"); ok {
			m.report(password)
		}
		authority = m.mask(authority[:at]) + authority[at:]
	}
	path, query, found := strings.Cut(path, "?")
	if found {
		parts := strings.Split(query, "&")
		for i, part := range parts {
			name, value, ok := strings.Cut(part, "=")
			end := len(value)
			if i := strings.IndexAny(value, " \t\r\n\"'`<>"); i >= 0 { // the end of the URL
				end = i
			}
			switch {
			case !ok || !Named(name) && !(m.settings && Telling(name, value[:end])):
			case expand.IsVariable(value):
				m.report(value)
			default:
				parts[i] = name + "=" + m.mask(value[:end]) + value[end:]
			}
		}
		path += "?" + strings.Join(parts, "&")
	}
	return authority + path
}

// assigned masks values whose names indicate secrets in free text.
func (m masker) assigned(text string) string {
	if !strings.ContainsAny(text, "=:-") {
		return text
	}
	var b strings.Builder
	rest := text
	for {
		at := strings.IndexAny(rest, "=: ")
		if at < 0 {
			b.WriteString(rest)
			return b.String()
		}
		name := strings.TrimRight(rest[:at], `"'\`)
		name = name[strings.LastIndexAny(name, " \t\r\n\"'`;|&(){}[],<>$")+1:]
		mark := rest[at]
		b.WriteString(rest[:at+1])
		rest = rest[at+1:]
		switch {
		case mark == ':' && strings.HasSuffix(strings.ToLower(name), "cookie"): // it may have several parts
			rest = m.next(&b, rest, "\r\n\"'`")
		case Named(name) && (mark != ' ' || strings.HasPrefix(name, "-")) && !strings.Contains(name, "/"):
			rest = m.next(&b, rest, " \t\r\n\"'`;|&)}],")
		case mark != ':' && slices.Contains([]string{"-u", "--user", "--proxy-user", "-U"}, name):
			// The value of these options of curl is user:password.
			rest = m.password(&b, rest)
		}
	}
}

// password masks the second half of user:password at the beginning of rest, and
// returns what follows it.
func (m masker) password(b *strings.Builder, rest string) string {
	user, password, found := strings.Cut(rest, ":")
	word := strings.TrimLeft(user, " \t")
	if !found || strings.ContainsAny(word, " \t\r\n;|&") {
		return rest
	}
	stops := " \t\r\n\"'`;|&)"
	if strings.HasPrefix(word, `"`) || strings.HasPrefix(word, "'") {
		stops = word[:1]
	}
	b.WriteString(user + ":")
	return m.next(b, password, stops)
}

// next writes the masked beginning of rest, up to a quote or one of the
// characters in stops, and returns what follows it. It keeps quotes, even escaped
// ones, and the scheme of a header.
func (m masker) next(b *strings.Builder, rest, stops string) string {
	after := strings.TrimLeft(rest, " \t")
	value := strings.TrimLeft(after, `"'\`)
	opening := after[:len(after)-len(value)]
	quote := opening[:strings.IndexAny(opening, `"'`)+1]
	value = withoutScheme(value)
	variable := 0 // the length of ${NAME} at the beginning, whose brace may be among the stops
	if m.settings && strings.HasPrefix(value, "${") {
		variable = strings.Index(value, "}") + 1
	}
	end := strings.IndexAny(value[variable:], stops)
	if end >= 0 {
		end += variable
	}
	if quote != "" {
		end = strings.Index(value, quote)
	}
	if end < 0 {
		end = len(value)
	}
	b.WriteString(rest[:len(rest)-len(value)])
	if end > 0 {
		b.WriteString(m.mask(value[:end]))
	}
	return value[end:]
}

// Args masks apparent secrets in the words of a command, including the values of
// options whose names indicate secrets. It keeps references that only say where a
// secret comes from.
func Args(args []string) []string {
	out := make([]string, len(args))
	before := ""
	for i, arg := range args {
		out[i], before = Word(before, arg, nil), arg
	}
	return out
}

// Word is Args for one word; before is the word before it, or "". Each secret is reported to found,
// which may be nil.
func Word(before, word string, found func(secret string)) string {
	m := inSettings(found)
	if opens(before) && !strings.HasPrefix(word, "-") {
		return m.source(word)
	}
	if name, value, ok := strings.Cut(word, "="); ok && Named(name) && !strings.Contains(name, "/") {
		return name + "=" + m.source(value)
	}
	if masked, ok := m.header(word); ok {
		return masked
	}
	if strings.ContainsAny(word, " \n\"") { // it may be a command line for a shell
		return m.text(word)
	}
	return m.known(word)
}

// header masks a word that is a header whose name indicates a secret, such as
// "Authorization: Bearer x", optionally after -H. It keeps a variable.
func (m masker) header(word string) (masked string, ok bool) {
	name, value, found := strings.Cut(word, ":")
	option, rest, assigned := strings.Cut(name, "=")
	if assigned && strings.HasPrefix(option, "-") {
		masked, ok = m.header(rest + ":" + value)
		return option + "=" + masked, ok
	}
	if !found || strings.ContainsAny(name, "/= \t{\"") || strings.HasPrefix(value, "//") || !Named(name) {
		return "", false
	}
	plain := withoutScheme(strings.TrimLeft(value, " \t"))
	return name + ":" + value[:len(value)-len(plain)] + m.source(plain), true
}

// withoutScheme returns the value of a header without the scheme that says how it authenticates.
func withoutScheme(value string) string {
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic ", "basic ", "token ", "Token "} {
		value = strings.TrimPrefix(value, scheme)
	}
	return value
}

// opens reports whether a word is an option whose value, the next word, is a
// secret.
func opens(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && Named(word)
}

// Source masks a secret in the settings but shows where it comes from: variables, the
// references env: and file:, and the program of cmd:.
func Source(value string) string {
	plain := withoutScheme(value)
	if value == "" || expand.IsVariable(strings.Replace(plain, ":-}", "}", 1)) { // an empty default is not a secret
		return value
	}
	switch kind, target := Reference(value); kind {
	case "env", "file":
		return value
	case "cmd":
		program, _, _ := strings.Cut(strings.TrimSpace(target), " ")
		return "cmd:" + MaskKnown(program) + " " + Masked
	}
	return Masked
}

// Reference splits the value of a secret setting into the kind of reference (env,
// file or cmd) and its target; kind is "" for plain text. Only a whole value can
// be a reference; a URL (file://…) or a tag such as env:a-b is not one.
func Reference(value string) (kind, target string) {
	kind, target, ok := strings.Cut(value, ":")
	if !ok || strings.TrimSpace(target) == "" {
		return "", ""
	}
	switch {
	case kind == "env" && expand.IsVariable("${"+target+"}"):
	case kind == "file" && !strings.HasPrefix(target, "//"):
	case kind == "cmd":
	default:
		return "", ""
	}
	return kind, target
}

// Value masks decoded JSON in place and returns it: secrets in strings, strings and
// numbers whose keys indicate secrets, and in lists the word after an option whose
// name indicates a secret. name is the key of v, or "".
func Value(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, field := range v {
			v[k] = Value(k, field)
		}
		return v
	case []any:
		before := ""
		for i := range v {
			word, _ := v[i].(string)
			if v[i] = Value(name, v[i]); opens(before) && word != "" && !strings.HasPrefix(word, "-") {
				v[i] = Masked
			}
			before = word
		}
		return v
	case string:
		if Named(name) && v != "" {
			return Masked
		}
		return masker{}.text(v)
	case json.Number:
		if Named(name) {
			return Masked
		}
	}
	return v
}

// minLength is the minimum length of a known secret that is masked, because masking
// "1" would make every text unreadable and hide nothing.
const minLength = 6

// NewReplacer returns a replacer that masks values that are known to be secret, except short ones, in
// every form in which they are sent: as they are, without the scheme of a header, as in "Bearer x",
// escaped as in URLs, and in base64.
func NewReplacer(secrets []string) *strings.Replacer {
	var forms []string
	for _, s := range secrets {
		_, token, _ := strings.Cut(s, " ")
		for _, form := range []string{s, token} {
			if len(form) >= minLength {
				forms = append(forms, form, url.QueryEscape(form), url.PathEscape(form),
					base64.StdEncoding.EncodeToString([]byte(form)))
			}
		}
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	// Longest first, because one may contain another.
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Masked)
	}
	return strings.NewReplacer(pairs...)
}

// passwordOption returns the short option with which a program takes a password, or ""
// if there is none. apart reports whether the password may also be the next word;
// after mysql -p the next word is a database.
func passwordOption(program string) (option string, apart bool) {
	switch program {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlpump", "mysqlslap",
		"mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import",
		"mariadb-show", "mariadb-check", "7z", "7za", "7zz":
		return "-p", false
	case "sshpass", "mongo", "mongosh", "mongodump", "mongorestore":
		return "-p", true
	case "redis-cli":
		return "-a", true
	}
	return "", false
}

// short masks passwords in short options of programs that are known to accept
// them, as in "mysql -pSECRET". For other programs -p is a port, a path or a project.
func (m masker) short(text string) string {
	if !strings.Contains(text, "-p") && !strings.Contains(text, "-a") {
		return text
	}
	var b strings.Builder
	option, apart := "", false // those of the last program
	for rest := text; rest != ""; {
		end := strings.IndexAny(rest, " \t\r\n;|&()`")
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		value, short := strings.CutPrefix(word, option)
		if o, a := passwordOption(path.Base(strings.Trim(word, `"'\`))); o != "" {
			option, apart = o, a
		} else if short && option != "" && (value != "" || apart) &&
			(!strings.Contains(value, ":") || strings.Trim(value, "0123456789.:") != "") { // not -p3306:3306 of docker
			b.WriteString(option)
			rest = m.plain(&b, rest[len(option):])
			option = "" // the option occurs once: in sshpass -p x ssh -p 22 the second one is a port
			continue
		}
		b.WriteString(word)
		if end < len(rest) {
			b.WriteByte(rest[end])
			if strings.IndexByte("\n;|&()`", rest[end]) >= 0 {
				option = ""
			}
			end++
		}
		rest = rest[end:]
	}
	return b.String()
}

// plain is next for a word of a command line. It keeps a variable, and an
// option after another one.
func (m masker) plain(b *strings.Builder, rest string) string {
	word := strings.TrimLeft(rest, " \t")
	if end := strings.IndexAny(word, " \t\r\n;|&)"); end >= 0 {
		word = word[:end]
	}
	apart := strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t")
	if expand.IsVariable(strings.Trim(word, `"`)) || apart && strings.HasPrefix(word, "-") {
		return rest
	}
	return m.next(b, rest, " \t\r\n\"'`;|&)")
}
