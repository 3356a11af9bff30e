package page

import (
	"encoding/json"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hooklock/admin/client"
)

// inShell runs lines by a real shell, and returns the commands that ran: each with its arguments.
func inShell(t *testing.T, lines ...string) (ran [][]string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to try it with: ", err)
	}
	const end = "end of this one"
	script := `show() { for a; do printf '%s\0' "$a"; done; printf '` + end +
		`\0'; }; hooklock() { show hooklock "$@"; }; curl() { show curl "$@"; }; TOKEN=t` + "\n" +
		strings.Join(lines, "\n")
	out, err := exec.Command(sh, "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v %s", script, err, out)
	}
	for _, one := range strings.SplitAfter(string(out), end+"\x00") {
		if one != "" {
			args := strings.Split(strings.TrimSuffix(one, "\x00"), "\x00")
			ran = append(ran, args[:len(args)-1])
		}
	}
	return ran
}

// copied is lines with what a person has typed.
type copied struct {
	Lines []shellLine `json:"lines"`
	Typed typed       `json:"typed"`
}

// byScript returns lines as the page's own script makes them.
func byScript(t *testing.T, all []copied) (made [][]string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js to run the script with: ", err)
	}
	script, err := static.ReadFile("static/lines.js")
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(node, "-e", string(script)+`
		const all = JSON.parse(require("fs").readFileSync(0, "utf8"));
		process.stdout.write(JSON.stringify(all.map((one) => one.lines.map((line) => shellLine(line, one.typed)))));`)
	c.Stdin = strings.NewReader(string(input))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// hostileTexts are what a sender may name a workflow, or a person may give for a reason.
func hostileTexts() []string {
	texts := []string{
		"it's", "'; id; '", "$(id)", "`id`", "\\", "a b", "-rf", "--admin=http://evil", "", "⟨reason:shell⟩",
		"⟨base⟩'; id; '", "{{.}}", "a\nb", `"`, `{"a":1}`, "*", "~", "#", "&", "%27", "é\u202e",
		"'\"'\"'", "$'\\x27'", "!id", "end",
	}
	for c := rune(1); c < 256; c++ {
		texts = append(texts, "a"+string(c)+"b")
	}
	return texts
}

// TestWhatASenderOrAPersonWritesIsTextInACopiedLine: whatever they write, the same command runs
// with it as an argument.
func TestWhatASenderOrAPersonWritesIsTextInACopiedLine(t *testing.T) {
	var all []copied
	for _, text := range hostileTexts() {
		r := request{Method: "POST", Path: "v1/x/" + pathSegment(text), Query: map[string]string{"execution": text},
			Body: map[string]any{"scope": text}, Reason: "body", Final: true, Period: true}
		inQuery := request{Method: "DELETE", Path: "v1/x", Reason: "query"}
		all = append(all, copied{
			[]shellLine{
				hooklockCommand("pause", argument(text), "--label", text, "--reason", theReason, until, asFinal),
				r.curlLine(),
				inQuery.curlLine(),
				forEach([]string{"exec_1", text}, hooklockCommand("skip", theID, "--reason", theReason)),
			},
			typed{"base": "http://[::1]:8079/", "reason": text, "period": text, "final": "yes"},
		})
	}
	t.Run("by Go", func(t *testing.T) {
		for _, one := range all {
			var lines []string
			for _, l := range one.Lines {
				lines = append(lines, l.lineText(one.Typed))
			}
			checkLines(t, one.Typed["reason"], inShell(t, lines...))
		}
	})
	t.Run("by the script", func(t *testing.T) {
		for i, lines := range byScript(t, all) {
			checkLines(t, all[i].Typed["reason"], inShell(t, lines...))
		}
	})
}

func checkLines(t *testing.T, text string, ran [][]string) {
	t.Helper()
	if len(ran) != 5 {
		t.Fatalf("%q: %d commands ran: %q", text, len(ran), ran)
	}
	want := []string{"hooklock", "pause", text, "--label", text, "--reason", text}
	tail := []string{"--final", "--admin", "http://[::1]:8079/"}
	if text != "" {
		want = append(want, "--until", text)
	}
	want = append(want, tail...)
	if strings.HasPrefix(text, "-") {
		want = append(slices.Delete(want, 2, 3), "--", text)
	}
	if !slices.Equal(ran[0], want) {
		t.Errorf("%q: ran %q, want %q", text, ran[0], want)
	}
	post, loop := ran[1], ran[3:]
	target, err := url.Parse(post[len(post)-3])
	var body map[string]any
	if err == nil {
		err = json.Unmarshal([]byte(post[len(post)-1]), &body)
	}
	if err != nil || len(post) != 8 || post[4] != "Authorization: Bearer t" ||
		target.Query().Get("execution") != text || body["scope"] != text || body["reason"] != text ||
		body["final"] != true {
		t.Errorf("%q: ran %q %v", text, post, err)
	}
	if target, err := url.Parse(ran[2][len(ran[2])-1]); err != nil || target.Query().Get("reason") != text {
		t.Errorf("%q: ran %q %v", text, ran[2], err)
	}
	for i, id := range []string{"exec_1", text} {
		if !slices.Equal(loop[i], []string{"hooklock", "skip", id, "--reason", text, "--admin", "http://[::1]:8079/"}) {
			t.Errorf("%q: ran %q", text, loop[i])
		}
	}
}

func TestAWorkflowThatIsNamedAsAPlaceForTheReasonIsReleased(t *testing.T) {
	const workflow = "orders/⟨reason:shell⟩'; id; '⟨base⟩"
	lock := client.Lock{Workflow: workflow, ExecutionID: anID}
	api := &scripted{answers: map[string]any{"/v1/locks/" + workflow: &lock,
		"/v1/executions/" + anID: &client.Execution{ExecutionID: anID, Workflow: workflow}}}
	_, text := questionOf(t, api, "do=release&id="+anID+"&workflow="+url.QueryEscape(workflow))
	_, line, _ := strings.Cut(text, "hooklock locks release ")
	line, _, _ = strings.Cut("hooklock locks release "+line, "</pre>")
	if ran := inShell(t, line); len(ran) != 1 || len(ran[0]) < 8 || ran[0][3] != workflow || ran[0][7] != "why" {
		t.Errorf("%q ran %q", line, ran)
	}
}
