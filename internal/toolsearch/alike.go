package toolsearch

import (
	"slices"
	"strings"
)

// groups are words that people and tools use with the same meaning, one group per line.
// They are general verbs, nouns and abbreviations, not terms of a product.
const groups = `
add create insert make new register
delete remove drop erase destroy clear rid discard forget
update change edit modify set adjust
get read fetch retrieve load show view display see
search find query lookup look locate
send post write
copy duplicate clone
run execute start launch trigger
stop end cancel terminate kill
restart reboot
move transfer
attach upload put
download save export dump
undo revert rollback restore roll
share permission access
issue ticket bug
event meeting appointment
calendar agenda schedule
email mail message
folder directory dir
image picture photo
row record
column field
cell range
comment remark note reply answer
sprint cycle iteration
user member person people colleague
remember memorize recall memory
remember memorize add
fact observation
relation relationship
statistics stats metrics analytics
slide presentation deck
spreadsheet sheet workbook excel xlsx
invoice bill
price cost
count number many total
version revision
website site page
document doc
documentation docs
database db
repository repo
environment env
variable var
configuration config settings
authentication auth login
kubernetes k8s
javascript js
pr pull request
mr merge request
`

// alike returns the stems with the same meaning as a stem.
func alike() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(groups) {
		group := stems(line)
		for _, stem := range group {
			for _, other := range group {
				if other != stem && !slices.Contains(out[stem], other) {
					out[stem] = append(out[stem], other)
				}
			}
		}
	}
	return out
}
