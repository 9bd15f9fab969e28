package main

import "time"

// agedTable is a table of sources, of which some were not asked. For those the
// age of what the cache holds is the last cell in a pipe; on a terminal it has a
// column before the last, where there is any.
type agedTable struct {
	table
	ages []string
}

// addAged adds a row; cachedAt is nil for what was asked.
func (t *agedTable) addAged(cachedAt *time.Time, ms int64, cells ...string) {
	age := ""
	if cachedAt != nil {
		age = ageText(ms)
	}
	t.ages = append(t.ages, age)
	t.add(cells...)
}

func (t *agedTable) print(a *app) error {
	any := false
	for i, age := range t.ages {
		if age == "" {
			continue
		}
		any = true
		if !a.outTTY {
			t.rows[i] = append(t.rows[i], age)
		}
	}
	if any && a.outTTY {
		t.header = beforeLast(t.header, "AGE")
		for i := range t.rows {
			t.rows[i] = beforeLast(t.rows[i], t.ages[i])
		}
	}
	return t.table.print(a)
}

func beforeLast(cells []string, cell string) []string {
	last := len(cells) - 1
	return append(append(cells[:last:last], cell), cells[last])
}

// ageText says how old something is, in a form that time.ParseDuration reads.
func ageText(ms int64) string {
	age := time.Duration(ms) * time.Millisecond
	if age > 10*time.Second {
		return age.Truncate(time.Second).String()
	}
	return age.String()
}
