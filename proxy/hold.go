package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"hooklock/idem"
	"hooklock/proxy/wire"
)

// holdFor returns how long the upstream may be silent after its answer; 0 = the work is done. The
// upstream's header has precedence over the route's rule for the status. A header that cannot be
// read, for which err says why, means a hold all the same: the work goes on, and a lock that is
// given away too early lets two run at once.
func holdFor(p *idem.Policy, answer *wire.Answer) (ttl time.Duration, err error) {
	asked, given, err := askedHold(answer.Fields)
	if err == nil && given {
		return asked, nil
	}
	if err != nil || p.HoldOn.Has(answer.Status) {
		ttl = p.HoldTTL
	}
	return ttl, err
}

// askedHold reads Hooklock-Hold: a Go duration such as 30m; 0s says that the work is done whatever
// the status.
func askedHold(fields []wire.Field) (asked time.Duration, given bool, err error) {
	for _, f := range fields {
		if !bytes.EqualFold(f.Name, []byte(headerHold)) {
			continue
		}
		if given {
			return 0, true, errors.New(headerHold + " is given twice")
		}
		given = true
		if asked, err = time.ParseDuration(string(f.Value)); err != nil || asked < 0 {
			return 0, true, fmt.Errorf("%s is %.40q; write a duration, such as 30m", headerHold, f.Value)
		}
	}
	return asked, given, nil
}
