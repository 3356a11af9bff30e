package idem

import "slices"

// Member is a part of a delivery: its path, as a template spells it, and a digest of its value.
type Member struct {
	Path string
	Sum  uint64
}

// Differences are the paths of members that only one of a and b has, or that have another value there, sorted.
func Differences(a, b []Member) []string {
	var all []string
	for _, one := range [][2][]Member{{a, b}, {b, a}} {
		for _, m := range one[0] {
			if !slices.Contains(one[1], m) {
				all = append(all, m.Path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
