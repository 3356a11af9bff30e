package story

import (
	"os/exec"
	"strings"
	"testing"
)

// inShell runs a line by a real shell, and returns the arguments that it gave to the command
// "show".
func inShell(t *testing.T, line string) []string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to try it with: ", err)
	}
	out, err := exec.Command(sh, "-c", `show() { for a; do printf '%s\0' "$a"; done; }; `+line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v %s", line, err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestEveryByteIsTextInAShell(t *testing.T) {
	all := make([]byte, 0, 255)
	texts := []string{"", "-", "--x=y", "~", "#", "a b", "''", `\`, `'\''`, "$(id)", "`id`", "$HOME", "!!", "a\n", "\n",
		"é\u202e", "'; id; '", "⟨reason:shell⟩", "{a,b}", "*", "=x", "a=b"}
	for c := 1; c < 256; c++ {
		all = append(all, byte(c))
		texts = append(texts, string([]byte{byte(c)}), "a"+string([]byte{byte(c)})+"b")
	}
	texts = append(texts, string(all))
	for from := 0; from < len(texts); from += 100 {
		some := texts[from:min(from+100, len(texts))]
		got := inShell(t, ShellLine(append([]string{"show"}, some...)...))
		if len(got) != len(some) {
			t.Fatalf("%d words became %d", len(some), len(got))
		}
		for i := range some {
			if got[i] != some[i] {
				t.Errorf("%q became %q", some[i], got[i])
			}
		}
	}
	if got := ShellWord("a\x00b"); got != "'ab'" {
		t.Errorf("a NUL: %q", got)
	}
	if line := ShellWord(string(all)); strings.ContainsFunc(line, func(r rune) bool {
		return r < 0x20 && r != '\n' || r == 0x7f
	}) {
		t.Errorf("a terminal would act upon %q", line)
	}
}
