package link

import (
	"context"
	"slices"
	"strings"
)

// Space is how full the database of a member is.
type Space struct {
	Endpoint           string // "" = of a client in this process
	Size, InUse, Quota int64  // bytes; Quota 0 = it does not say
	Full               bool   // it takes nothing new
}

// Space returns how full the members at these endpoints are, or the one of a client in this process
// without endpoints. Members that do not answer, and those that may not be asked, are left out.
// Each is asked over a connection of its own.
func (p *Pool) Space(ctx context.Context, endpoints []string) (all []Space) {
	c, _, err := p.Current()
	if err != nil {
		return nil
	}
	if len(endpoints) == 0 {
		endpoints = []string{""}
	}
	for _, endpoint := range endpoints {
		one, cancel := context.WithTimeout(ctx, p.Attempt)
		s, err := c.Status(one, endpoint)
		cancel()
		if err != nil {
			continue
		}
		full := slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, "NOSPACE") })
		all = append(all, Space{Endpoint: endpoint, Size: s.DbSize, InUse: s.DbSizeInUse, Quota: s.DbSizeQuota,
			Full: full})
	}
	return all
}
