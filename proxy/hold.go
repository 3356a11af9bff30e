package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"hooklock/proxy/wire"
)

// holdFor returns how long the upstream may be silent after its answer; 0 = the work is done. The upstream's header has precedence over the
// route's rule for the status. A header that cannot be read means a hold all the same: the work goes on, and a lock that is given away too
// early lets two run at once.
func (a *attempt) holdFor(status int) time.Duration {
	p := &a.route.Policy
	asked, given, err := askedHold(a.call.answer.Fields)
	switch {
	case err != nil:
		a.h.o.Log.Warn("hold.unreadable", "error", err, "held_for", p.HoldTTL.String(), "route", a.route.Name, "execution", string(a.report.Execution), "trace_id", a.trace.TraceID())
		return p.HoldTTL
	case given:
		return asked
	case p.HoldOn.Has(status):
		return p.HoldTTL
	}
	return 0
}

// askedHold reads Hooklock-Hold: a Go duration such as 30m; 0s says that the work is done whatever the status.
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
