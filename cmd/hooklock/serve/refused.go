package serve

import (
	"cmp"
	"time"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

const (
	// resendPatience is how long an event is followed if nothing is known of its sender's schedule.
	resendPatience = 10 * time.Minute
	// neverPatience is how long an event is followed whose sender sends nothing again by itself.
	neverPatience = time.Minute
	// refusedPerSecond bounds the refused events of a route without signatures that are stored,
	// unless it has new_per_second.
	refusedPerSecond = 20
)

// following says how refused events of a route are followed; the zero value: the route is not
// known, or it remembers no events.
func (s *Service) following(route string, byPayload bool) idem.Following {
	routes := s.routes.Load()
	if routes == nil || (*routes)[route] == nil || !(*routes)[route].Policy.Idempotency {
		return idem.Following{}
	}
	return followingOf((*routes)[route], byPayload)
}

func followingOf(r *proxy.Route, byPayload bool) idem.Following {
	f := idem.Following{Patience: resendPatience, Remembered: r.Policy.RetentionOf(byPayload)}
	if p := r.Verify.Preset; p != nil {
		f.Schedule = p.Facts.RetriesFor
		if p.Facts.Retries == sender.RetriesNever {
			f.Patience = neverPatience
		}
	}
	if !r.Policy.Verified {
		f.NewPerSecond = cmp.Or(r.Policy.NewPerSecond, refusedPerSecond)
	}
	return f
}
