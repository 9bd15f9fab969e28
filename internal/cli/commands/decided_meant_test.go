package commands_test

import "slices"

// exempt are cells that are meant to become looser, but no looser than atLeast.
type exempt struct {
	rows, columns []string
	atLeast       strictness
	why           string
}

// meant returns whether and why a cell is meant to become looser.
func meant(row, column string) (exempt, bool) {
	for _, e := range exempts() {
		if slices.Contains(e.rows, row) && slices.Contains(e.columns, column) {
			return e, true
		}
	}
	return exempt{}, false
}

// exempts returns the cells that are meant to become looser.
func exempts() []exempt {
	const (
		byProject = "trust shows it before the person agrees, and her own rules come first"
		another   = "it is another tool, and what was said is about that of the server"
		byDefault = "it is another tool, and tools of the project are decided by their own source and category"
	)
	qualified := []string{"a server with a tool of the name", "an API with an operation of the name", "a server of the name of the person's"}
	ofBuiltin := []string{"deny by default", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by name and path", "exclude a command"}
	ofServer := []string{"deny a server", "deny a tool of a server", "exclude a tool of a server"}
	return []exempt{
		{ofBuiltin, qualified, asked, "it has its server's name before its own, and is decided by its server"},
		{[]string{"banned commands"}, qualified, ran, "it has its server's name before its own, and is decided by its server; --yes answers"},
		{append([]string{"banned commands", "plan mode", "plan mode by flag", "ask by alias and command", "ask by category", "the defaults as they are"}, ofBuiltin...),
			[]string{"a discovered tool that does not overwrite"}, ran, "it has command__ before its name, and is decided as a discovered tool"},
		{[]string{"only some built-in tools", "a permission that is off"}, append([]string{"a discovered tool of the name", "a discovered tool of an alias", "a discovered tool of the name in capitals", "a discovered tool that does not overwrite",
			"a plugin's tool of the name", "a plugin's tool of the name, which says that it writes", "a composite of the name", "an override renames another tool onto the name",
			"an override renames another tool of the server onto the name"}, qualified...), asked, "it is about built-in tools, and about what tools say that they need; another tool of the name is decided like the built-in one"},
		{ofServer, []string{"a discovered tool of the name", "a discovered tool of the name in capitals", "a discovered tool that does not overwrite", "a plugin's tool of the name",
			"a plugin's tool of the name, which says that it writes", "a composite of the name", "an override renames another tool onto the name"}, ran, another},
		{ofServer, []string{"a server with a tool of the name", "an API with an operation of the name"}, asked, another},
		{[]string{"only certain params"}, []string{"a discovered tool of the name in capitals", "a server with a tool of the name", "an API with an operation of the name",
			"an override renames another tool onto the name"}, ran, another},
		{[]string{"plan mode", "plan mode by flag", "the defaults as they are"}, []string{"a plugin's tool of the name", "a composite of the name", "a discovered tool of the name",
			"a discovered tool of the name in capitals", "an override renames another tool onto the name"}, ran, byDefault},
		{[]string{"ask by default", "deny by default", "the defaults as they are"}, []string{"a rule of the project", "allowedTools of the project", "defaults of the project"}, ran, byProject},
		{[]string{"ask by default", "plan mode", "the defaults as they are", "ask by alias and command", "ask by category", "ask by name"}, []string{"a mode of the project"}, ran, byProject},
		{[]string{"a profile for reading"}, []string{"a discovered tool of the name", "a discovered tool of an alias", "a discovered tool of the name in capitals", "a discovered tool that does not overwrite",
			"a plugin's tool of the name", "an override renames another tool onto the name", "an override changes the category"}, ran, "a category is what a tool or its override says; --yes answers, where rules would not"},
		{[]string{"an optional tool"}, []string{"a discovered tool that does not overwrite"}, ran, byDefault},
		{[]string{"allow by default"}, []string{"a discovered tool of the name", "a discovered tool of an alias", "a discovered tool of the name in capitals", "an override renames another tool onto the name"}, ran,
			"the default is about every tool that writes"},
		{[]string{"only some tools", "only some built-in tools", "a permission that is off"}, []string{"lists of the project"}, asked, byProject},
	}
}
