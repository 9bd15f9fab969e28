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
	for _, e := range slices.Concat(exempts(), open()) {
		if slices.Contains(e.rows, row) && slices.Contains(e.columns, column) {
			return e, true
		}
	}
	return exempt{}, false
}

func exempts() []exempt {
	const (
		byProject = "trust shows it before the person agrees, and her own rules come first"
		another   = "it is another tool, and what was said is about that of the server"
		byDefault = "it is another tool, and tools of the project are decided by their own source and category"
	)
	ofServer := []string{"deny a server", "deny a tool of a server", "exclude a tool of a server"}
	return []exempt{
		{ofServer, []string{"a discovered tool of the name", "a discovered tool of the name in capitals", "a discovered tool that does not overwrite", "a plugin's tool of the name",
			"a composite of the name", "an override renames another tool onto the name"}, ran, another},
		{ofServer, []string{"a server with a tool of the name", "an API with an operation of the name"}, asked, another},
		{[]string{"only certain params"}, []string{"a discovered tool of the name in capitals", "a server with a tool of the name", "an API with an operation of the name",
			"an override renames another tool onto the name"}, ran, another},
		{[]string{"plan mode", "plan mode by flag", "the defaults as they are"}, []string{"a plugin's tool of the name", "a composite of the name"}, ran, byDefault},
		{[]string{"ask by default", "deny by default", "the defaults as they are"}, []string{"a rule of the project", "allowedTools of the project", "defaults of the project"}, ran, byProject},
		{[]string{"ask by default", "plan mode", "the defaults as they are", "ask by alias and command", "ask by category", "ask by name"}, []string{"a mode of the project"}, ran, byProject},
		{[]string{"only some tools", "only some built-in tools"}, []string{"lists of the project"}, asked, byProject},
	}
}

// open returns the cells that are looser than they should be.
func open() []exempt {
	return []exempt{
		{[]string{"deny by name", "exclude a command", "exclude by alias", "banned commands", "exclude by name", "plan mode by flag", "plan mode", "deny by default", "ask by alias and command", "the defaults as they are", "ask by category", "ask by name", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a discovered tool of an alias"}, ran, "not done yet"},
		{[]string{"deny by name", "exclude a command", "exclude by alias", "banned commands", "plan mode by flag", "plan mode", "deny by default", "ask by alias and command", "the defaults as they are", "ask by category", "ask by name", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a discovered tool that does not overwrite"}, ran, "not done yet"},
		{[]string{"exclude a tool of a server", "exclude a command", "exclude by alias", "banned commands", "deny by default", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a server of the name of the person's"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "plan mode by flag", "plan mode", "deny by default", "ask by alias and command", "the defaults as they are", "ask by category", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a discovered tool of the name"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "plan mode by flag", "plan mode", "deny by default", "ask by alias and command", "the defaults as they are", "ask by category", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a discovered tool of the name in capitals"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "deny by default", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"a server with a tool of the name"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "deny by default", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"an API with an operation of the name"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "plan mode by flag", "plan mode", "deny by default", "ask by alias and command", "the defaults as they are", "ask by category", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "a hook that denies by alias", "only some built-in tools"},
			[]string{"an override renames another tool onto the name"}, ran, "not done yet"},
		{[]string{"exclude a command", "exclude by alias", "banned commands", "deny by default", "deny a command", "deny by category and path", "deny by category", "deny by path", "deny by alias and path", "deny by alias", "deny by name and path", "allow built-in tools by a glob", "allow tools by a glob", "allow by a source", "allow a tool by its server's name", "allow a tool of a server", "allow a tool by a rule", "allow a tool by its name", "a hook that denies by alias", "only some built-in tools"},
			[]string{"an override renames another tool of the server onto the name"}, ran, "not done yet"},
		{[]string{"exclude by alias", "only some built-in tools"},
			[]string{"a plugin's tool of the name"}, ran, "not done yet"},
		{[]string{"exclude by alias", "only some built-in tools"},
			[]string{"a composite of the name"}, ran, "not done yet"},
	}
}
