package testkit

import (
	"regexp"
	"strings"
)

var (
	logGroup = regexp.MustCompile(`(?m)^- \*\*([a-z]+ fields)\*\*: (.*)$`)
	inTicks  = regexp.MustCompile("`([^`]+)`")
)

// LogTable is docs/logs.md: the fields of each event. A row may name a group of fields that the
// page lists once.
func LogTable(page string) map[string][]string {
	groups := []string{}
	for _, m := range logGroup.FindAllStringSubmatch(page, -1) {
		groups = append(groups, m[1], m[2])
	}
	expand := strings.NewReplacer(groups...)
	table := map[string][]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(cells[1], "Event") {
			continue
		}
		fields := []string{}
		for _, field := range inTicks.FindAllStringSubmatch(expand.Replace(cells[4]), -1) {
			fields = append(fields, field[1])
		}
		for _, event := range inTicks.FindAllStringSubmatch(cells[1], -1) {
			table[event[1]] = append([]string{}, fields...)
		}
	}
	return table
}
