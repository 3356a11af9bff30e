package config

import "fmt"

// rejectUnmatched sets the default of unmatched: reject as soon as a route refuses deliveries with
// a bad signature, because a path that bypasses a route bypasses its signature. It returns the
// notes about it.
func (c *Config) rejectUnmatched() (notes Problems) {
	i, enforced := c.firstSigned()
	switch {
	case i < 0:
	case enforced:
		c.Unmatched = UnmatchedReject
		notes = append(notes, Problem{Path: "unmatched", Text: fmt.Sprintf(
			"is reject (404), the default as soon as a route checks signatures, as routes[%d] (%s) does; say "+
				"unmatched: pass if Hooklock stands in front of more than these routes", i, c.Routes[i].Name)})
	default:
		notes = append(notes, Problem{Path: "unmatched", Text: fmt.Sprintf(
			"is pass while no route enforces; it becomes reject (404) when routes[%d] (%s) does, unless you say "+
				"unmatched: pass", i, c.Routes[i].Name)})
	}
	return notes
}

// firstSigned returns the first route that refuses deliveries with a bad signature or, if none
// does, that would if its mode were not observe; -1 is none.
func (c *Config) firstSigned() (index int, enforced bool) {
	index = -1
	for i := range c.Routes {
		switch r := &c.Routes[i]; {
		case r.Verify.Scheme == SchemeNone:
		case r.Mode != ModeObserve:
			return i, true
		case index < 0:
			index = i
		}
	}
	return index, false
}

// checkUnmatched warns about paths that bypass signatures.
func (v *validator) checkUnmatched() {
	c := v.config
	if i, enforced := c.firstSigned(); enforced && c.Unmatched == UnmatchedPass {
		v.warn("unmatched", "pass, beside the signatures of routes[%d] (%s): whatever the service takes for that "+
			"route and Hooklock does not reaches it unsigned, without a lock and as often as it is sent, "+
			"such as a rewritten path, another Host or a path in the query or a header; reject, or give what else "+
			"the service serves another way in", i, c.Routes[i].Name)
	}
}
