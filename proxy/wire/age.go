package wire

import "time"

// A connection that is kept may occupy a worker of the service (Apache's prefork, servers with a
// thread for each connection), which others wait for. So it is given up while it is young: after a
// tenth of a second it has saved nearly all that it can save.
const (
	// shortestLife is how long a connection takes requests at least.
	shortestLife = 100 * time.Millisecond
	// longestLife is the most, where connections are expensive, or many.
	longestLife = time.Second
	// slowAnswer is how long an exchange takes at least that is not worth a kept connection, and
	// slowShare how many times the connect and handshake.
	slowAnswer = 20 * time.Millisecond
	slowShare  = 50
	// setupShare is how many times its connect and handshake a connection lives.
	setupShare = 20
	// retireApart is the least time on average between two connections that are closed before
	// longestLife. The side that closes keeps the port for a minute, and has some 28 000.
	retireApart = 4 * time.Millisecond
	// retireAtOnce is for how many that need not be: more than a small service has workers.
	retireAtOnce = 32
	// sweepEvery is how often the idle ones are looked at, while there are any.
	sweepEvery = 50 * time.Millisecond
)

// isSlow reports whether an exchange over c took so long that a new connection costs next to
// nothing.
func (c *conn) isSlow(took time.Duration) bool { return took > max(slowAnswer, slowShare*c.setup) }

// retireIfOld reports whether c is too old for another request, and counts on its close then. u.mu
// is held.
func (u *Upstream) retireIfOld(c *conn, now time.Time) bool {
	age := now.Sub(c.made)
	if u.options.MaxAge > 0 {
		return age >= u.options.MaxAge
	}
	paid := u.retired // until then the last closes are paid for
	if paid.Before(now) {
		paid = now
	}
	if age < longestLife && (age < max(shortestLife, setupShare*c.setup) || paid.Sub(now) > retireAtOnce*retireApart) {
		return false
	}
	u.retired = paid.Add(retireApart)
	return true
}

// sweepLater has sweepIdle run soon. u.mu is held.
func (u *Upstream) sweepLater() {
	switch {
	case u.sweeps:
		return
	case u.sweeper == nil:
		u.sweeper = time.AfterFunc(sweepEvery, u.sweepIdle)
	default:
		u.sweeper.Reset(sweepEvery)
	}
	u.sweeps = true
}

// sweepIdle closes idle connections that are old, and runs again while there are others.
func (u *Upstream) sweepIdle() {
	u.mu.Lock()
	u.sweeps = false
	now := u.options.Now()
	var old []*conn
	kept := u.idle[:0]
	for _, c := range u.idle {
		if u.retireIfOld(c, now) {
			old = append(old, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear(u.idle[len(kept):])
	u.idle = kept
	if len(kept) > 0 && !u.closed {
		u.sweepLater()
	}
	u.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}
