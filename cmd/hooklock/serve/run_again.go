package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/kept"
	"hooklock/proxy/requests"
)

// archivedAgain implements etcdlock.Options.Archived.
func (s *Service) archivedAgain(ctx context.Context, r *idem.Record, to idem.ExecutionID) (again idem.StoredRequest,
	runs *idem.ParkedEntry, err error) {
	a := s.archive.Load()
	if a == nil {
		return again, nil, idem.ErrNoRequest
	}
	route := s.routeNamed(r.Route)
	if route == nil {
		return again, nil, fmt.Errorf("route %s is not configured here", r.Route)
	}
	var request *kept.Request
	for _, at := range placesOf(r) {
		if request, again.Value, err = a.Rekeep(ctx, at, to); !errors.Is(err, requests.ErrNotKept) {
			break
		}
	}
	switch {
	case errors.Is(err, requests.ErrNotKept):
		return again, nil, fmt.Errorf("%w: %w", idem.ErrNoRequest, err)
	case err != nil:
		return again, nil, err
	}
	again.Bytes, err = s.requests.Size(again.Value)
	return again, route.Policy.RunsAgain(r, route.QuestionOf(request)), err
}

// placesOf returns where the request of r may be: its own place, then those of attempts before it
// with the same request, because r may have ended before its service was called.
func placesOf(r *idem.Record) []requests.Place {
	places := []requests.Place{requests.PlaceOf(&r.ExecutionFacts)}
	for _, a := range slices.Backward(r.Earlier) {
		if len(a.NextDiffers) > 0 || !a.Settled {
			break
		}
		places = append(places, requests.Place{Execution: a.Execution, StartedAt: a.StartedAt})
	}
	return places
}

// routeNamed returns the route of that name, or that had it; nil: there is none.
func (s *Service) routeNamed(name string) *proxy.Route {
	routes := s.routes.Load()
	if routes == nil {
		return nil
	}
	if r := (*routes)[name]; r != nil {
		return r
	}
	for _, r := range *routes {
		if slices.Contains(r.Former, name) {
			return r
		}
	}
	return nil
}
