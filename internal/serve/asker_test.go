package serve

import (
	"bufio"
	"regexp"
	"strings"
	"testing"
)

// An answer that is none of the choices is neither a yes nor the user's no; "once" is yes.
func TestAnswersOfClients(t *testing.T) {
	replica := newReplicas(t, 1, "", map[string]string{"n": ";modern asks"}, false)[0]
	session := newRawSession(t, replica, aliceToken)
	const notUnderstood = `answer was not understood: its \"decision\" is not one of the choices), so it was not run`
	for content, want := range map[string]string{
		`{"decision":"maybe"}`: notUnderstood, `{"decision":"always-server"}`: notUnderstood, `{"decision":5}`: notUnderstood, `{}`: notUnderstood,
		`{"decision":"no"}`: "The user said no to this call, so it was not run", `{"decision":"yes"}`: `"text":"slept"`, `{"decision":"once"}`: `"text":"slept"`,
	} {
		call := sent{tool: "slow", args: `{"seconds":0}`}
		call.state = send(t, replica, call).state(t)
		call.answers = `{"toolreg.approval":{"action":"accept","content":` + content + `}}`
		if r := send(t, replica, call); !strings.Contains(r.stream, want) {
			t.Errorf("%s: %s", content, r.stream)
		}
		stream := bufio.NewScanner(session.send(t, replica, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":0}}}`).Body)
		last := ""
		for stream.Scan() {
			last += stream.Text()
			if asked := regexp.MustCompile(`"id":(\d+),"method":"elicitation/create"`).FindStringSubmatch(stream.Text()); asked != nil {
				session.send(t, replica, `{"jsonrpc":"2.0","id":`+asked[1]+`,"result":{"action":"accept","content":`+content+`}}`)
			}
		}
		if !strings.Contains(last, want) {
			t.Errorf("%s in a session: %s", content, last)
		}
	}
}
