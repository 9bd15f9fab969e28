package settings

import "slices"

// serverPrograms lists what the servers of an entry run and reach.
func (l *loader) serverPrograms(e entry) []program {
	var out []program
	for _, f := range e.node.fields {
		o := e.origin
		o.Line, o.Col = f.line, f.col
		p := program{key: e.key + "." + f.name, origin: o, cwd: f.value.str("cwd"), env: valuesOf(f.value.get("env"))}
		if address := f.value.str("httpUrl") + f.value.str("url"); address != "" {
			out = append(out, program{key: p.key, origin: o, url: address})
		}
		out = append(out, loginPrograms(p.key, o, f.value.get("oauth"))...)
		if command := f.value.str("command"); command != "" {
			p.argv = append([]string{command}, stringsIn(f.value.get("args"))...)
			out = append(out, p)
		}
	}
	return out
}

// loginPrograms lists the addresses that a login to a server sends credentials
// to.
func loginPrograms(key string, o Origin, oauth *node) []program {
	if oauth == nil || oauth.kind != kindObject {
		return nil
	}
	var out []program
	for _, f := range oauth.fields {
		if f.value.kind == kindString && slices.Contains([]string{"issuer", "authorizationUrl", "tokenUrl", "registrationUrl", "idpIssuer"}, f.name) {
			o.Line, o.Col = f.line, f.col
			out = append(out, program{key: key + ".oauth." + f.name, origin: o, url: f.value.text})
		}
	}
	return out
}
