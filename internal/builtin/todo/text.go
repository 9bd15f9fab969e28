package todo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/registry"
)

// resultOf returns a result that shows a list, with head before it and note
// after it.
func resultOf(head string, todos []registry.Todo, note string) registry.Result {
	counts := map[string]int{}
	for _, t := range todos {
		counts[t.Status]++
	}
	summary := "no todos"
	if len(todos) > 0 {
		summary = fmt.Sprintf("%s: %d in progress, %d pending, %d completed",
			tool.Count(len(todos), "todo"), counts["in_progress"], counts["pending"], counts["completed"])
	}
	title := strings.ToUpper(summary[:1]) + summary[1:] + ".\n"
	r := registry.TextResult(head + title + listText(todos) + note)
	r.Summary = summary
	r.Display.Todos = slices.Clone(todos)
	if r.Display.Todos == nil {
		r.Display.Todos = []registry.Todo{}
	}
	return r
}

func listText(todos []registry.Todo) string {
	var b strings.Builder
	for _, t := range todos {
		b.WriteString(lineOf(t) + "\n")
	}
	return b.String()
}

// lineOf formats one entry as a line.
func lineOf(t registry.Todo) string {
	mark := map[string]string{"completed": "[x]", "in_progress": "[~]"}[t.Status]
	return fmt.Sprintf("%s %s (%s): %s",
		cmp.Or(mark, "[ ]"), t.ID, t.Priority, strings.ReplaceAll(t.Content, "\n", "\n    "))
}

func asideNote(aside string) string {
	if aside == "" {
		return ""
	}
	return fmt.Sprintf("The previous list was damaged; its file is kept as %s.\n", aside)
}

// lost lists the unfinished entries of before that are missing in after.
func lost(before, after []registry.Todo) string {
	var b strings.Builder
	for _, t := range before {
		kept := slices.ContainsFunc(after, func(other registry.Todo) bool { return other.ID == t.ID })
		if !kept && t.Status != "completed" {
			fmt.Fprintf(&b, "No longer in the list: %s\n", lineOf(t))
		}
	}
	return b.String()
}
