package config

import (
	"fmt"
	"strings"
	"testing"
)

// repeat is the text that line gives for the numbers below n.
func repeat(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func TestAThousandRoutesAreRead(t *testing.T) {
	text := "routes:\n" + repeat(maxItems, func(i int) string {
		return fmt.Sprintf("- {name: r%d, path: '/%d/{x}', lock: {max_duration: 2h}}\n", i, i)
	})
	if got := len(load(t, text).Config.Routes); got != maxItems {
		t.Errorf("got %d", got)
	}
}

// Without bounds, some of these keep Load busy for minutes once they are made large enough.
func TestAHostileFileIsRefusedAndCostsLittle(t *testing.T) {
	same := func(text string) func(int) string { return func(int) string { return text } }
	for name, c := range map[string]struct{ text, want string }{
		"nested lists":    {repeat(1<<15, same("[")), "not valid YAML"},
		"nested mappings": {repeat(1<<15, same("{a: ")), "not valid YAML"},
		"nested items":    {repeat(1<<15, same("- ")), "not valid YAML"},
		"a key repeated":  {repeat(1<<14, same("ab:\n")), "more problems"},
		"unknown keys": {repeat(1<<14, func(i int) string {
			return fmt.Sprintf("retension%d: 1\n", i)
		}), "more problems"},
		"a long value": {"limits: {waiting: '" + repeat(1<<18, same("x")) + "'}", "needs a whole number"},
		"a long pattern": {"routes: [{name: a, path: '" + repeat(1<<14, func(i int) string {
			return fmt.Sprintf("/{x%d}", i)
		}) + "'}]", "longer than 1024 bytes"},
		"many hosts": {"routes: [{name: a, path: /a, match: {hosts: [" + repeat(20_000, func(i int) string {
			return fmt.Sprintf("h%d,", i)
		}) + "]}}]", "at most 1000"},
		"many routes": {"routes:\n" + repeat(5000, same("- {name: a, path: /a}\n")), "at most 1000"},
		"an alias bomb": {"routes:\n- &x {name: a, path: /a, match: {hosts: [" + repeat(900, same("a,")) + "]}}\n" +
			repeat(900, same("- *x\n")), "more than 200000 values"},
		"a cycle":          {"routes: &r [*r]", "needs a mapping"},
		"a cycle of holds": {"routes: [{name: a, path: /a, hold: &v {ttl: *v}}]", "needs a duration"},
		"many tokens":      {"admin:\n  tokens:\n" + repeat(5000, same("  - {name: a}\n")), "at most 1000"},
		"too much":         {repeat(maxFile+1, same("#")), "larger than 4 MiB"},
	} {
		if got := refusalOf(t, Source{Bytes: []byte(c.text)}); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got[:min(len(got), 500)])
		}
	}
}
