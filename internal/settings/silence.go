package settings

// Silence is an entry of check.silence: findings of servers check that are accepted.
type Silence struct {
	Rule   string `setting:"rule"`
	Reason string `setting:"reason"`
	Server string `setting:"server"` // a name or glob; "" means all
	Tool   string `setting:"tool"`   // a name or glob of tools, prompts or resources; "" means all
	Origin Origin
}
