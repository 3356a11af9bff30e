package admin

import (
	"net/http"
	"slices"

	"hooklock/admin/attention"
	"hooklock/admin/client"
)

// suggestions returns the routes that this process suggests. They are over all workflows, as the
// report is.
func (c *call) suggestions() error {
	since, err := c.moment("since", c.query("since"))
	if err != nil {
		return err
	}
	list := c.api.options.Suggest(since)
	if route := c.query("route"); route != "" {
		list.Suggestions = slices.DeleteFunc(list.Suggestions, func(s client.Suggestion) bool {
			return s.Route != route && s.Path != route
		})
	}
	ctx, done := c.reading()
	defer done()
	// else they are not counted: what is suggested needs no etcd
	if notes, err := c.api.options.Ledger.Replicas(ctx); err == nil {
		for _, one := range attention.Views(attention.ReadReplicas(notes)) {
			if one.State == client.ReplicaLive && !one.Self {
				list.Others++
			}
		}
	}
	return c.ok(http.StatusOK, list)
}
