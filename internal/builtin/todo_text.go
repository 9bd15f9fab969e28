package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// todoResult shows a list, with head before it and note behind.
func todoResult(head string, todos []registry.Todo, note string) registry.Result {
	counts := map[string]int{}
	for _, t := range todos {
		counts[t.Status]++
	}
	summary := "no todos"
	if len(todos) > 0 {
		summary = fmt.Sprintf("%s: %d in progress, %d pending, %d completed",
			count(len(todos), "todo"), counts["in_progress"], counts["pending"], counts["completed"])
	}
	title := strings.ToUpper(summary[:1]) + summary[1:] + ".\n"
	r := registry.TextResult(head + title + todoText(todos) + note)
	r.Summary = summary
	r.Display.Todos = slices.Clone(todos)
	if r.Display.Todos == nil {
		r.Display.Todos = []registry.Todo{}
	}
	return r
}

func todoText(todos []registry.Todo) string {
	var b strings.Builder
	for _, t := range todos {
		b.WriteString(todoLine(t) + "\n")
	}
	return b.String()
}

// todoLine is one entry on one line.
func todoLine(t registry.Todo) string {
	mark := map[string]string{"completed": "[x]", "in_progress": "[~]"}[t.Status]
	return fmt.Sprintf("%s %s (%s): %s", cmp.Or(mark, "[ ]"), t.ID, t.Priority, strings.ReplaceAll(t.Content, "\n", "\n    "))
}

func asideNote(aside string) string {
	if aside == "" {
		return ""
	}
	return fmt.Sprintf("The list before was damaged; its file is kept as %s.\n", aside)
}

// dropped tells which unfinished entries are no longer in the list: another
// writer may have added them.
func dropped(before, after []registry.Todo) string {
	kept := map[string]bool{}
	for _, t := range after {
		kept[t.ID] = true
	}
	var b strings.Builder
	for _, t := range before {
		if !kept[t.ID] && t.Status != "completed" {
			fmt.Fprintf(&b, "No longer in the list: %s\n", todoLine(t))
		}
	}
	return b.String()
}
