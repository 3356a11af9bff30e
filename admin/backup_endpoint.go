package admin

import (
	"errors"
	"io"
	"time"

	"hooklock/idem"
)

// longestBackup bounds how long a copy of the embedded etcd takes, because its file grows
// meanwhile.
const longestBackup = 15 * time.Minute

// sendBackup sends a copy of the embedded etcd. It holds every stored answer, so it needs a token
// without limits.
func (c *call) sendBackup() error {
	switch {
	case !c.caller.token.Read:
		return forbiddenProblem("read")
	case c.caller.isLimited():
		return refuse("forbidden", "a backup is of all workflows, and the token is limited to some")
	case c.api.options.Backup == nil:
		return refuse("no_embedded_etcd", "this Hooklock keeps its records in an etcd cluster: make a snapshot of "+
			"etcd itself, with etcdctl snapshot save")
	}
	ctx, done, err := c.waitContext(longestBackup)
	if err != nil {
		return err
	}
	defer done()
	snapshot, err := c.api.options.Backup(ctx)
	if err != nil {
		c.api.options.Log.Warn("admin.backup", "error", err.Error())
		return refuse("store_unavailable", "the embedded etcd cannot be copied now; its log says why")
	}
	c.auditNow(idem.AuditDone)
	c.w.Header().Set("Content-Type", "application/octet-stream")
	_, err = io.Copy(c.w, snapshot)
	if err = errors.Join(err, snapshot.Close()); err != nil {
		c.api.options.Log.Warn("admin.backup", "error", err.Error())
		c.audit.broken = true
	}
	return nil
}
