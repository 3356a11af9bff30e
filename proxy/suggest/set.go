package suggest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"hooklock/idem/naming"
)

// maxPaths bounds the paths that are told apart.
const maxPaths = 100

// Set is what is known of deliveries, by path. The zero value is empty. It is not safe for concurrent use.
type Set struct {
	tables []*Table
	Missed int // deliveries of further paths
}

// Add notes a delivery under its path. Segments that look like an ID become variables of one path.
func (s *Set) Add(d *Delivery) {
	path, vars := generalPath(d.Message.Path)
	i := slices.IndexFunc(s.tables, func(t *Table) bool { return t.path == path })
	if i < 0 {
		if len(s.tables) == maxPaths {
			s.Missed++
			return
		}
		i, s.tables = len(s.tables), append(s.tables, NewTable(path))
	}
	d.Message.Vars = vars
	s.tables[i].Add(d)
}

// Suggest returns a suggestion for each path, in their order, each with a name of its own.
func (s *Set) Suggest() (all []*Suggestion) {
	slices.SortFunc(s.tables, func(a, b *Table) int { return strings.Compare(a.path, b.path) })
	names := map[string]int{}
	for _, t := range s.tables {
		name := routeName(t.path)
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, names[name])
		}
		if found := t.Suggest(name, t.rows[0].at); found != nil {
			all = append(all, found)
		}
	}
	return all
}

// generalPath returns a raw path with variables for the segments that look like an ID.
func generalPath(raw []byte) (path string, vars []naming.PathVar) {
	segments := bytes.Split(raw, []byte{'/'})
	for i, s := range segments {
		if !isIDSegment(string(s)) {
			continue
		}
		name := fmt.Sprintf("id%d", len(vars)+1)
		vars = append(vars, naming.PathVar{Name: name, Raw: s})
		segments[i] = []byte("{" + name + "}")
	}
	return string(bytes.Join(segments, []byte{'/'})), vars
}

func isIDSegment(s string) bool {
	digits := 0
	for _, r := range s {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	return s != "" && (digits == len(s) || digits >= 3 && len(s) >= 8)
}

// routeName returns a name for the route of a path: its last segment that is no variable.
func routeName(path string) string {
	segments := strings.Split(path, "/")
	for _, s := range slices.Backward(segments) {
		name := strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return '-'
		}, s), "-")
		if name != "" && !strings.HasPrefix(s, "{") {
			return name[:min(len(name), 40)]
		}
	}
	return "all"
}
