package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

const (
	originDefault  = "default"
	originApproval = "approval"
)

// clause is one step of the policy. Verdicts have its name.
type clause struct {
	name string
	// says returns the verdict of the clause, or false if it does not apply. It receives the
	// verdict of the clauses before it and has no side effects.
	says    func(*matter, Verdict) (Verdict, bool)
	loosens bool // its verdict may be less strict than the one before
}

// deciding are the clauses of which the first that applies decides about a call, or about one part
// of its command line. The last always applies.
func deciding() []clause {
	return []clause{
		{name: "too-large", says: tooLarge},
		{name: "catastrophic", says: catastrophic},
		{name: "banned", says: runsBanned},
		{name: "core", says: outsideCore},
		{name: "rule", says: byRule},
		{name: "no-effect", says: withoutEffect},
		{name: "auto-edit", says: autoEdit},
		{name: "approval", says: byApproval},
		{name: "default", says: byDefault},
	}
}

// ofPart are the clauses that change the verdict on one part of a command line.
func ofPart() []clause {
	return []clause{
		{name: "doubt", says: inDoubt},
		{name: "other-folder", says: inOtherFolder},
		{name: "changed-program", says: changedProgram},
	}
}

// ofCall are the clauses that change the verdict on a call: first those about what a person must
// see, then the approval mode, then those that apply in every mode.
func ofCall() []clause {
	return []clause{
		{name: "reads-files", says: readsFiles},
		{name: "guarded-path", says: guardedPath},
		{name: "hidden-path", says: hiddenPath},
		{name: "credentials", says: credentials},
		{name: "tool-asks", says: toolAsks},
		{name: "sandbox-leftovers", says: sandboxLeftovers},
		{name: "plan", says: planMode},
		{name: "yolo-doubt", says: yoloDoubt},
		{name: "yolo", says: yoloMode, loosens: true},
		{name: "sandbox-required", says: sandboxRequired},
		{name: "contested-name", says: contestedName},
		{name: "no-answers", says: noAnswers},
	}
}

// decide returns the verdict of the first of the clauses that applies.
func (m *matter) decide(clauses []clause) Verdict {
	for _, c := range clauses {
		if v, ok := c.says(m, Verdict{}); ok {
			v.Clause = c.name
			return v
		}
	}
	return Verdict{}
}

// amend applies clauses to a verdict in order. A denial is final. Only a clause with loosens set
// can make a verdict less strict.
func (m *matter) amend(v Verdict, clauses []clause) Verdict {
	for _, c := range clauses {
		if v.Decision == Deny {
			return v
		}
		w, ok := c.says(m, v)
		if !ok || !c.loosens && stricter(v.Decision, w.Decision) != w.Decision {
			continue
		}
		w.Clause, w.Commands, w.Changes, w.Confine = c.name, v.Commands, v.Changes, v.Confine
		v = w
	}
	return v
}

func tooLarge(m *matter, _ Verdict) (Verdict, bool) {
	if m.part == nil || !m.part.Refused {
		return Verdict{}, false
	}
	return Verdict{Decision: Deny, Origin: originDefault, Reason: m.part.Doubt}, true
}

func catastrophic(m *matter, _ Verdict) (Verdict, bool) {
	switch {
	case m.part == nil || m.part.Catastrophic == "":
		return Verdict{}, false
	case m.policy.AskCatastrophic:
		return Verdict{Origin: originDefault,
			Reason: "setting shell.catastrophic requires confirmation: " + m.part.Catastrophic}, true
	}
	return Verdict{Decision: Deny, Origin: originDefault,
		Reason: "setting shell.catastrophic denies it: " + m.part.Catastrophic}, true
}

// runsBanned denies a part that runs a banned program. A tool that has taken the name of the shell
// tool is denied if any program is banned, because it is unknown what the tool runs.
func runsBanned(m *matter, _ Verdict) (Verdict, bool) {
	b := m.banned
	if m.bearsShell() && len(m.policy.Banned) > 0 {
		b = &m.policy.Banned[0]
	}
	if b == nil {
		return Verdict{}, false
	}
	v := Verdict{Decision: Deny, Origin: b.Setting, Reason: fmt.Sprintf("setting shell.banned denies %q", b.Value)}
	switch {
	case m.part == nil:
		v.Reason = m.rename(v.Reason)
	case slices.Contains([]string{"rm", "rmdir", "unlink"}, b.Value):
		v.Reason += "; the tool apply_patch deletes files"
	}
	return v, true
}

// outsideCore denies a part of a command line that is not in coreTools or tools.only, and a tool
// that has taken the name of the shell tool if either setting limits that tool's commands.
func outsideCore(m *matter, _ Verdict) (Verdict, bool) {
	limit := m.outside
	if m.bearsShell() && len(m.policy.Core) > 0 {
		limit = &m.policy.Core[0]
	}
	if limit == nil {
		return Verdict{}, false
	}
	var core []string
	for _, r := range limit.Commands {
		core = append(core, r.Command)
	}
	v := Verdict{Decision: Deny, Origin: limit.Commands[0].Origin,
		Reason: limit.Setting + " allows only commands that begin with " + strings.Join(core, ", ")}
	if m.part == nil {
		v.Reason = m.rename(v.Reason)
	}
	return v, true
}

// bearsShell reports whether m is a whole call of another tool that has taken the name of the shell
// tool. What it runs is unknown.
func (m *matter) bearsShell() bool {
	return m.part == nil && m.bears != nil && m.bears.Name == shellToolName
}

// rename adds to a reason that comes from the tool's name how to rename the tool.
func (m *matter) rename(reason string) string {
	return m.underName(reason) +
		fmt.Sprintf("; give the tool another name where it is defined, or with overrides.%s.name", m.tool.Name)
}

func byRule(m *matter, _ Verdict) (Verdict, bool) {
	if m.rule == nil {
		return Verdict{}, false
	}
	return m.verdictOf(m.rule), true
}

func withoutEffect(m *matter, _ Verdict) (Verdict, bool) {
	return Verdict{Decision: Allow, Origin: originDefault,
		Reason: "it has no effect besides the other parts of the line"}, m.part != nil && m.part.Passes
}

func autoEdit(m *matter, _ Verdict) (Verdict, bool) {
	// Some tools only change data of toolreg itself, such as the todo list.
	writesNoFile := m.tool.Source == registry.SourceBuiltin && m.category == registry.CategoryWrite && m.tool.Subject == nil
	return Verdict{
		Decision: Allow,
		Origin:   m.policy.modeOrigin(),
		Reason:   "the approval mode allows edits inside the workspace",
	}, m.part == nil && m.policy.Mode == ModeAutoEdit && (m.isEdit() || writesNoFile)
}

func byApproval(m *matter, _ Verdict) (Verdict, bool) {
	if m.byDefault().Decision == Allow { // approvals cannot change this, so do not read them
		return Verdict{}, false
	}
	a := m.recall().approval
	if a == nil {
		return Verdict{}, false
	}
	v := Verdict{Decision: Allow, Origin: originApproval, Approval: a.ID, Reason: "you chose to always allow it"}
	switch {
	case m.part != nil && a.Confined:
		v.Decision, v.Reason = m.sandboxed(fmt.Sprintf("you chose to always run %q in the sandbox", a.Value),
			"it was allowed in the sandbox")
	case m.part != nil:
		v.Reason = fmt.Sprintf("you chose to always allow %q", a.Value)
	}
	return v, true
}

func byDefault(m *matter, _ Verdict) (Verdict, bool) {
	v := m.byDefault()
	if v.Decision == Allow {
		return v, true
	}
	v.Changes = m.recall().changes
	if m.part != nil && m.doubt == "" {
		v.remember = m.part.Cover()
	}
	switch {
	case v.Decision != Ask:
	case m.part != nil:
		v.Reason = cmp.Or(m.whyAsked(), v.Reason)
	case len(v.Changes) > 0:
		v.Reason = changedReason(v.Changes)
	}
	return v, true
}

// whyAsked explains why no rule or approval decides about a part if a person might expect one to;
// otherwise it returns "".
func (m *matter) whyAsked() string {
	p := m.part
	allowed := func() bool { // by a rule on the first words, if these were enough
		return slices.ContainsFunc(m.rules, func(r *Rule) bool {
			return r.Decision == Allow && p.Begins(r.Command, true) && m.unmet(r) == ""
		})
	}
	switch {
	case p.Root() == "apply_patch" || p.Root() == "applypatch":
		return "apply_patch is a tool and no program: call it with the patch as its param"
	case p.Doubt != "":
		return p.Doubt
	case m.recall().elsewhere:
		return m.elsewhere
	case p.Exact != "" && allowed():
		return p.Exact + ", so a rule must have all words of the command"
	case p.Named != "" && allowed():
		return p.Named
	}
	return ""
}

// asks returns v changed to ask a person.
func (v Verdict) asks(reason string) Verdict {
	v.Decision, v.Reason, v.Origin, v.Rule = Ask, reason, originDefault, nil
	return v
}

// runs reports whether the call runs without a question.
func (v Verdict) runs() bool { return v.Decision == Allow || v.Decision == Sandbox }

func inDoubt(m *matter, v Verdict) (Verdict, bool) {
	doubt := m.doubt
	if m.part.Unread {
		doubt = m.part.Doubt
	}
	return v.asks(doubt), v.runs() && doubt != ""
}

// inOtherFolder asks about a part that runs in a folder which a rule about its words does not
// cover.
func inOtherFolder(m *matter, v Verdict) (Verdict, bool) {
	return v.asks(m.elsewhere), m.elsewhere != "" && v.Decision == Allow &&
		m.rule != nil && m.rule.Command != "" && m.rule.When == nil
}

func changedProgram(m *matter, v Verdict) (Verdict, bool) {
	if v.Decision != Allow {
		return v, false
	}
	changed := m.changedFiles(m.part)
	v.changed = changed
	return v.asks("a sandboxed program may have changed " + strings.Join(changed, ", ")), len(changed) > 0
}

// readsFiles applies the rules for reading files with the built-in tool to files that a call of
// another source's tool sends: a rule that keeps the model from a file applies whatever tool reads
// it.
func readsFiles(m *matter, v Verdict) (Verdict, bool) {
	strictest := Verdict{Decision: Allow}
	if m.tool.Source == registry.SourceBuiltin {
		return v, false
	}
	for _, p := range m.subject.Paths {
		params, err := json.Marshal(map[string]string{"file_path": p})
		if err != nil {
			return Verdict{Decision: Deny, Origin: originDefault, Reason: err.Error()}, true
		}
		read := m.policy.factsOfTool(m.ctx,
			&registry.Tool{Definition: registry.Definition{Name: "read_file",
				Source: registry.SourceBuiltin, Category: registry.CategoryRead}},
			false)
		read.call, read.subject = &registry.Call{Params: params}, registry.Subject{Paths: []string{p}}
		if r := read.aboutCall().decide(deciding()); r.Decision == Deny ||
			r.Decision == Ask && strictest.Decision == Allow {
			strictest = r
		}
	}
	return strictest, strictest.Decision == Deny || strictest.Decision == Ask && v.Decision == Allow
}

func guardedPath(m *matter, v Verdict) (Verdict, bool) {
	guarded := m.changes(m.policy.Guarded)
	return Verdict{
		Origin: originDefault,
		Firm:   true,
		Reason: fmt.Sprintf(
			"%q can make other programs run commands; changing it always requires confirmation", guarded),
	}, guarded != "" && v.Decision == Allow
}

func hiddenPath(m *matter, v Verdict) (Verdict, bool) {
	hidden := m.changes(m.policy.NewHidden)
	return Verdict{Origin: originDefault, Firm: true,
			Reason: fmt.Sprintf("programs may act on %q, as on files whose names begin with a dot and in a home folder; only a rule with its path allows changing it",
				hidden)},
		hidden != "" && v.Decision == Allow && (v.Rule == nil || v.Rule.Path == "")
}

func credentials(m *matter, v Verdict) (Verdict, bool) {
	if !v.runs() {
		return v, false
	}
	for _, p := range m.subject.Paths {
		if why := m.credential(p); why != "" && !m.opens(m.pathRules(), p) {
			return Verdict{Origin: originDefault, Firm: true, ByPath: true,
				Reason: fmt.Sprintf("%q %s; only a rule with its path allows it", p, why)}, true
		}
	}
	return v, false
}

func toolAsks(m *matter, _ Verdict) (Verdict, bool) {
	return Verdict{Reason: m.asking.Reason, Origin: m.asking.Origin, Firm: true}, m.asking.Reason != ""
}

// sandboxLeftovers asks before a command outside the sandbox runs what a sandboxed program has left
// behind.
func sandboxLeftovers(m *matter, v Verdict) (Verdict, bool) {
	if m.means.Uncleaned == nil || v.Decision != Allow || m.subject.Command == "" {
		return v, false
	}
	confined, _ := m.confinement()
	return Verdict{
		Origin: originDefault,
		Firm:   true,
		Reason: "a sandboxed program is still running in the workspace, or was killed, and what it has written there can change what this command runs; stop it, or remove such files with `toolreg --yes call run_shell_command command=true`, which runs in the sandbox",
	}, !confined.On && m.means.Uncleaned()
}

func planMode(m *matter, _ Verdict) (Verdict, bool) {
	return Verdict{
		Decision: Deny,
		Origin:   m.policy.modeOrigin(),
		Reason:   fmt.Sprintf("plan mode allows only reading, and tool %q may do more", m.tool.Name),
	}, m.policy.Mode == ModePlan && m.category != registry.CategoryRead && m.tool.Source != registry.SourceComposite
}

// yoloDoubt denies a call that yolo mode would allow if the call may contain a denied command.
func yoloDoubt(m *matter, v Verdict) (Verdict, bool) {
	if !m.isAgreed(v) || !m.unsure && (!m.unread || m.denied() == "") {
		return v, false
	}
	v.Decision = Deny
	v.Reason += "; yolo mode does not ask, and " +
		cmp.Or(m.denied(), "commands that rules ask about") + " cannot be ruled out"
	return v, true
}

func yoloMode(m *matter, v Verdict) (Verdict, bool) {
	return Verdict{Decision: Allow, Origin: m.policy.modeOrigin(),
		Reason: "the approval mode allows it without asking"}, m.isAgreed(v)
}

// isAgreed reports whether the approval mode answers the question.
func (m *matter) isAgreed(v Verdict) bool {
	return v.Decision == Ask && m.policy.Mode == ModeYolo && !m.person
}

// denied describes the commands of this tool that are denied; it is "" if none are.
func (m *matter) denied() string {
	switch {
	case len(m.policy.Banned) > 0:
		return "banned commands"
	case slices.ContainsFunc(m.rules, func(r *Rule) bool { return r.Decision == Deny && m.ruleNames(r) }):
		return "commands that rules deny"
	case !m.policy.AskCatastrophic:
		return "commands that setting shell.catastrophic denies"
	}
	return ""
}

func sandboxRequired(m *matter, v Verdict) (Verdict, bool) {
	c, required := m.confinement()
	return Verdict{
		Decision: Deny, Origin: c.By,
		Reason: "it must run in the sandbox, which is not possible: " + c.Missing,
	}, required && !v.Confine.On && c.Missing != ""
}

func contestedName(m *matter, v Verdict) (Verdict, bool) {
	t, by := m.tool, m.tool.Contested
	if m.call != nil && (m.call.Tool == t.Qualified() || m.call.Tool == t.Server+"__"+t.PlainName()) {
		by = "" // the call names the tool's server
	}
	return Verdict{Origin: originDefault, Firm: true, Contested: by, Reason: fmt.Sprintf(
		"server %q failed, comes before %q, and may have a tool of this name; %s means that of %q", by,
		t.Server, t.Qualified(), t.Server)}, by != "" && v.runs()
}

// noAnswers denies a call that needs an answer while answers cannot be read.
func noAnswers(m *matter, v Verdict) (Verdict, bool) {
	if v.Decision != Ask || m.approvals().away == nil {
		return v, false
	}
	return Verdict{Decision: Deny, Later: true, Origin: originDefault,
		Reason: "it needs an answer, and " + m.approvals().away.Error()}, true
}

// verdictOf returns the verdict of a matching rule. A rule with the decision Sandbox asks if the
// call cannot be confined.
func (f *facts) verdictOf(r *Rule) Verdict {
	v := Verdict{Origin: r.Origin, Rule: r}
	switch r.Decision {
	case Allow:
		v.Decision, v.Reason = Allow, cmp.Or(r.Reason, "a rule allows it")
	case Deny:
		v.Decision, v.Reason = Deny, f.because(r, cmp.Or(r.Reason, "a rule denies it"))
	case Sandbox:
		const runs = "a rule runs it in the sandbox"
		v.Decision, v.Reason = f.sandboxed(cmp.Or(r.Reason, runs), runs)
	default:
		v.Reason = f.because(r, cmp.Or(r.Reason, "a rule requires confirmation"))
	}
	return v
}

// because adds to a rule's reason that the rule applies because something is unknown: what the call
// touches, or the value of its expression.
func (f *facts) because(r *Rule, reason string) string {
	if f.isBlindTo(r) {
		reason = f.underName(reason)
	}
	if r.When != nil && f.call != nil {
		if err := f.evaluate(r.When).err; err != nil {
			reason = fmt.Sprintf("%s; its condition counts as met because when failed: %v", reason, err)
		}
	}
	return reason
}

// byDefault returns the verdict if no rule and no approval matches.
func (f *facts) byDefault() Verdict {
	v := f.ownDefault()
	n := f.bears
	if n == nil {
		return v
	}
	named := f.policy.factsOfTool(f.ctx,
		&registry.Tool{Definition: registry.Definition{Name: n.Name,
			Source: registry.SourceBuiltin, Category: n.Category}},
		f.anyone)
	if b := named.ownDefault(); stricter(v.Decision, b.Decision) != v.Decision {
		b.Reason = f.underName(b.Reason)
		return b
	}
	return v
}

// ownDefault is byDefault for the tool's own source and category.
func (f *facts) ownDefault() Verdict {
	t, cat := f.tool, f.category
	set, isSet := f.policy.Defaults[cat]
	base := Verdict{Decision: Ask, Origin: originDefault}
	switch {
	case t.OfServer() && t.Trusted:
		base.Decision, base.Reason = Allow, t.ServerLabel()+" is trusted by the settings"
		base.Origin = cmp.Or(f.policy.TrustOrigins[t.Server], originDefault)
	case t.OfServer():
		base.Reason = fmt.Sprintf("tools of %s require confirmation", t.ServerLabel())
	case t.Source == registry.SourceCommand:
		base.Decision, base.Reason = Allow, "discovered tools run a command that the settings name"
	case t.Source == registry.SourceComposite:
		base.Decision, base.Reason = Allow, "each step of a composite is checked on its own"
	case cat == registry.CategoryRead:
		base.Decision, base.Reason = Allow, "tools that only read are allowed"
	default:
		base.Reason = fmt.Sprintf("tools of category %s require confirmation", cat)
	}
	if !isSet {
		return base
	}
	mixed := t.OfServer() || t.Source == registry.SourceCommand
	if mixed && stricter(base.Decision, set.Decision) == base.Decision {
		return base // a category default never loosens the decision for these tools
	}
	return f.verdictOf(&set)
}
