package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/kept"
	"hooklock/proxy/requests"
	"hooklock/proxy/telemetry"
)

// archivePatience is how long a stop waits for requests that are not written yet.
const archivePatience = 5 * time.Second

// openArchive opens the archive of requests, if there is a store for it. It may be asked for what
// an earlier configuration kept. It stops after all that gives it requests, and before its store.
func (s *Service) openArchive() {
	trouble := &archiveTrouble{service: s, now: time.Now}
	a := requests.NewArchive(s.requests, requests.ArchiveOptions{
		Limits: func() (int, int64) {
			of := &s.limits.Load().Kept
			return of.Events, int64(of.Bytes)
		},
		OnError:   trouble.noteFailure,
		Forgotten: s.Store.ListForgotten,
	})
	if a == nil {
		return
	}
	s.archive.Store(a)
	s.runBeside("archive", func(ctx context.Context) {
		rest, over := context.WithCancel(context.Background())
		defer over()
		context.AfterFunc(ctx, func() {
			patience := time.NewTimer(archivePatience)
			defer patience.Stop()
			select {
			case <-patience.C:
				over()
			case <-rest.Done():
			}
		})
		a.Run(ctx, rest)
	})
}

// archiveTrouble logs what could not be kept, once a minute at most.
type archiveTrouble struct {
	service *Service
	now     func() time.Time

	mu     sync.Mutex
	missed int
	next   time.Time
}

func (t *archiveTrouble) noteFailure(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.missed++
	if now := t.now(); !now.Before(t.next) {
		t.service.Log.Warn("requests.not_kept", "failures", t.missed, "error", err.Error())
		t.missed, t.next = 0, now.Add(time.Minute)
	}
}

// archiveRequest implements proxy.HandlerOptions.Archive.
func (s *Service) archiveRequest(e *idem.ExecutionFacts, keep time.Duration, r *kept.Request) {
	a := s.archive.Load()
	if a == nil {
		return
	}
	a.Put(requests.PlaceOf(e), keep, r)
	if old := e.AttemptDroppedNext(); old != nil { // an erasure would not find it later
		a.Drop(requests.Place{Execution: old.Execution, StartedAt: old.StartedAt})
	}
}

// keptCounts returns what the archive says of itself, for metrics.
func (s *Service) keptCounts() (n telemetry.KeptCounts) {
	if a := s.archive.Load(); a != nil {
		c := a.Counts()
		n = telemetry.KeptCounts{Events: c.Events, Bytes: c.Bytes, Dropped: c.Dropped, Removed: c.Removed}
	}
	return n
}

// archived is the archive as the API asks it; it may be nil.
type archived struct{ *requests.Archive }

// Has implements admin.Archive.
func (a archived) Has(ctx context.Context, e *idem.ExecutionFacts) (bool, error) {
	return a.Archive.Has(ctx, requests.PlaceOf(e))
}

// Request implements admin.Archive.
func (a archived) Request(ctx context.Context, e *idem.ExecutionFacts) (head, body []byte, err error) {
	r, err := a.Fetch(ctx, requests.PlaceOf(e))
	switch {
	case errors.Is(err, requests.ErrNotKept):
		return nil, nil, idem.ErrNoRequest
	case err != nil:
		return nil, nil, err
	}
	return r.Head, r.Body, nil
}

// Erase implements admin.Archive.
func (a archived) Erase(ctx context.Context, e *idem.ExecutionFacts) error {
	return a.Delete(ctx, requests.PlaceOf(e))
}

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
