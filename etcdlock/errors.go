package etcdlock

import (
	"fmt"

	"hooklock/etcdlock/commit"
	"hooklock/idem"
)

// ErrStoreFull means that etcd's space quota is used up, and what it refused will not be recorded. The execution's lock is free, its event
// may run again. Compact and defragment etcd or raise its quota, then disarm the NOSPACE alarm.
var ErrStoreFull = fmt.Errorf("%w and will not be: etcd is out of space; compact, defragment or raise the quota, then disarm the alarm", idem.ErrNotRecorded)

// unavailable is commit.Unavailable.
func unavailable(why error) error { return commit.Unavailable(why) }
