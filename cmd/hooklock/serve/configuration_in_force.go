package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/etcdlock"
	"hooklock/etcdlock/link"
	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

// inForce holds the configuration in force and the latest refusal. It is safe for concurrent use.
type inForce struct {
	file string // as the user named it

	mu      sync.Mutex
	loaded  *config.Loaded
	at      time.Time
	stale   bool // the latest one was refused
	refused []string
	refusal time.Time // zero: none was
	// described is what is said of loaded to other replicas; without Parts: that is to be made.
	described attention.Config
}

// setLoaded sets the configuration in force.
func (f *inForce) setLoaded(loaded *config.Loaded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded, f.at, f.stale, f.described = loaded, time.Now(), false, attention.Config{}
}

// emptiedBy reports whether a file that said something is blank in loaded.
func (f *inForce) emptiedBy(loaded *config.Loaded) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(bytes.TrimSpace(loaded.File)) == 0 && len(bytes.TrimSpace(f.loaded.File)) > 0
}

// setRefusal sets the latest refusal.
func (f *inForce) setRefusal(problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale, f.refused, f.refusal = true, problems, time.Now()
}

// fileHash returns the hash of the file, as sha256sum prints it. The caller holds mu.
func (f *inForce) fileHash() string {
	sum := sha256.Sum256(f.loaded.File)
	return hex.EncodeToString(sum[:])
}

func (f *inForce) configStatus() client.ConfigStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := client.ConfigStatus{File: f.file, SHA256: f.fileHash(), LoadedAt: client.Time{Time: f.at}, Stale: f.stale}
	if !f.refusal.IsZero() {
		s.Refused = &client.Refusal{At: client.Time{Time: f.refusal}, Problems: f.refused}
	}
	return s
}

// whyStale returns "" if the file as last read is in force. It quotes nothing of the file, because
// health needs no token.
func (f *inForce) whyStale() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stale {
		return ""
	}
	return "the changed file was refused at " + f.refusal.UTC().Format(time.RFC3339) +
		", and an older one is in force; hooklock status says why"
}

// problemsOf returns the problems of a configuration error.
func problemsOf(err error) []string {
	var problems []string
	for line := range strings.Lines(err.Error()) {
		problems = append(problems, strings.TrimSpace(line))
	}
	return problems
}

// contacts holds the state of etcd and the upstream, as requests of this process saw it.
type contacts struct {
	upstream report.Contact
	embedded report.Contact
	members  map[string]*report.Contact // by host and port
}

func newContacts(endpoints []string) *contacts {
	c := &contacts{members: map[string]*report.Contact{}}
	for _, endpoint := range endpoints {
		c.members[net.JoinHostPort(link.HostPort(endpoint))] = &report.Contact{}
	}
	return c
}

// recordOperation records a request to etcd.
func (c *contacts) recordOperation(op link.Operation) {
	member := &c.embedded
	if op.Host != "" {
		member = c.members[net.JoinHostPort(op.Host, op.Port)]
	}
	switch {
	case member == nil, op.Code == link.CodeCancelled: // by this process
	case op.Code == "", op.Code == link.CodeNotFound:
		member.Answer(time.Now())
	default:
		member.Fail(time.Now(), cmp.Or(op.Why, op.Code))
	}
}

// noteCall records a call of the upstream.
func (c *contacts) noteCall(r *proxy.Report) {
	switch {
	case r.UpstreamFrom.IsZero(), r.Decision == idem.DecisionAborted, r.Decision == idem.DecisionLockLost:
		// there was none, or this process ended it
	case r.UpstreamStatus != 0:
		c.upstream.Answer(time.Now())
	case r.Err != nil:
		c.upstream.Fail(time.Now(), r.Err.Error())
	}
}

// OnDelivered implements proxy.Observer.
func (c *contacts) OnDelivered(r *proxy.Report) { c.noteCall(r) }

// OnPassed implements proxy.Observer.
func (c *contacts) OnPassed(r *proxy.Report) { c.noteCall(r) }

// Event implements proxy.Observer.
func (c *contacts) Event(name proxy.EventName, r *proxy.Report) {
	if name == proxy.EventTried {
		c.noteCall(r)
	}
}

// sessionNote is the last known state of the session.
type sessionNote struct {
	mu   sync.Mutex
	name string
	at   time.Time
}

func (n *sessionNote) noteEvent(e etcdlock.SessionEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name, n.at = "", time.Time{}
	if e.Opened {
		n.name, n.at = e.Session, time.Now()
	}
}

func (n *sessionNote) sessionStatus(s *Service) client.SessionStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := client.SessionStatus{Live: true, Name: n.name, OpenedAt: client.Time{Time: n.at}, TTL: s.ttl.Seconds(),
		Remaining: s.Store.SessionTTLRemaining().Seconds()}
	if err := s.Store.Ready(); err != nil {
		v.Live, v.Reason = false, err.Error()
	}
	return v
}

// reuseStatus returns how connections to the upstream are used again, or the zero value before
// there is an upstream.
func (s *Service) reuseStatus() client.UpstreamReuse {
	upstream := s.upstream.Load()
	if upstream == nil {
		return client.UpstreamReuse{}
	}
	r := upstream.ReuseState()
	return client.UpstreamReuse{
		Setting: r.Mode.String(), Server: r.Server, Known: r.Known, Reused: r.Reused, Ended: r.Ended,
		EndedAt:    client.Time{Time: r.EndedAt},
		RestsUntil: client.Time{Time: r.RestsUntil},
	}
}

// Status implements admin.Process.
func (s *Service) Status() client.ReplicaStatus {
	v := client.ReplicaStatus{
		Replica: s.replica, Version: cli.BuildVersion(), StartedAt: client.Time{Time: s.startedAt},
		At:      client.Time{Time: time.Now()},
		Session: s.session.sessionStatus(s), Upstream: s.contacts.upstream.Seen(s.upstreamURL),
		Config:        s.inForce.configStatus(),
		UpstreamReuse: s.reuseStatus(),
		Etcd:          client.EtcdStatus{Embedded: s.embedded != nil, Members: []client.Contact{}},
		Running:       newCrowd(s.Store.Running()), Waiting: newCrowd(s.guard.Waiting()),
		Held:        newCrowd(s.Store.Held()),
		RateSeconds: report.Recent.Seconds(), Routes: s.report.Rates(),
	}
	if err := s.checkReady(); err != nil {
		v.NotReady = err.Error()
	}
	if s.embedded != nil {
		v.Etcd.Space = s.embedded.Space().String()
		v.Etcd.Members = append(v.Etcd.Members, s.contacts.embedded.Seen("embedded"))
	}
	if s.embedded == nil {
		v.Etcd.Space = s.space.spaceText()
	}
	for _, endpoint := range s.endpoints {
		v.Etcd.Members = append(v.Etcd.Members,
			s.contacts.members[net.JoinHostPort(link.HostPort(endpoint))].Seen(endpoint))
	}
	n := s.parkedCount()
	v.Parked = client.ParkedStatus{Count: n.Events, OldestAt: client.Time{Time: n.Oldest}, Bytes: n.Bytes,
		Blocked: n.Blocked, DeadLetters: n.DeadLetters}
	v.Parked.Routes, v.Parked.Unrouted = routeCounts(s.Store.ParkedRoutes(func(string) bool {
		return true
	})), routeCounts(s.countUnrouted())
	v.Parked.DeadLetterRoutes = routeCounts(s.Store.DeadLetterRoutes())
	for _, p := range s.Store.PausedHere() {
		v.Paused = append(v.Paused, client.PauseStatus{
			Scope: p.Scope.String(), By: p.By, Reason: p.Reason, Since: client.Time{Time: p.Since},
			Until: client.Time{Time: p.Until()}, Parked: p.Parked,
		})
	}
	for _, n := range s.Store.SlotsHere() {
		v.Slots = append(v.Slots, client.SlotCount{Limit: n.LimitName, Taken: n.Taken, Waiting: n.Waiting})
	}
	changes := s.changingRoutes()
	for i := range v.Routes {
		v.Routes[i].Changes = changes[v.Routes[i].Route]
	}
	return v
}

// changingRoutes returns the routes whose sender, by its preset, changes a delivery between
// attempts.
func (s *Service) changingRoutes() map[string]bool {
	routes := map[string]bool{}
	for _, r := range s.Routes() {
		if r.Sender == nil {
			continue
		}
		if p, known := sender.Lookup(r.Sender.Preset); known && p.OnMismatch == idem.MismatchReplay {
			routes[r.Route] = true
		}
	}
	return routes
}

func newCrowd(n int, since time.Time) client.Crowd {
	return client.Crowd{Count: n, OldestAt: client.Time{Time: since}}
}

// Routes implements admin.Process.
func (s *Service) Routes() []client.RouteRules {
	rules := s.rules.Load()
	if rules == nil {
		return []client.RouteRules{}
	}
	all := slices.Clone(*rules)
	for _, h := range s.report.Health() {
		i := slices.IndexFunc(all, func(r client.RouteRules) bool { return r.Route == h.Route })
		if i < 0 || all[i].Sender == nil || len(h.Limits) == 0 { // a reload may come between the two
			continue
		}
		sender := *all[i].Sender
		for _, n := range h.Limits {
			sender.Limits = append(sender.Limits, client.SenderLimit{Limit: n.Limit.String(), Ratio: n.Ratio})
		}
		all[i].Sender = &sender
	}
	return all
}

// Config implements admin.Process.
func (s *Service) Config(origin bool) (client.RunningConfig, error) {
	s.inForce.mu.Lock()
	defer s.inForce.mu.Unlock()
	var text strings.Builder
	if err := s.inForce.loaded.Show(&text, origin); err != nil {
		return client.RunningConfig{}, err
	}
	return client.RunningConfig{File: s.inForce.file, SHA256: s.inForce.fileHash(),
		LoadedAt: client.Time{Time: s.inForce.at}, YAML: text.String()}, nil
}

// reloadRequest is a request for a reload, and waits for the result.
type reloadRequest chan reloadResult

type reloadResult struct {
	changed []string
	err     error // why it was refused
}

// Reload implements admin.Process. The signal loop makes the reload, so that there is one at a
// time.
func (s *Service) Reload(ctx context.Context) (client.Reloaded, []string, error) {
	request := make(reloadRequest, 1)
	select {
	case s.reloads <- request:
	case <-ctx.Done():
		return client.Reloaded{}, nil, errors.New("this process is stopping and takes no reload")
	}
	select {
	case result := <-request:
		if result.err != nil {
			return client.Reloaded{}, problemsOf(result.err), nil //nolint:nilerr // it is told as what it is about
		}
		return client.Reloaded{SHA256: s.inForce.configStatus().SHA256, Changed: append([]string{}, result.changed...)},
			nil,
			nil
	case <-ctx.Done():
		return client.Reloaded{}, nil, context.Cause(ctx)
	}
}

func routeCounts(counts map[string]int) (all []client.RouteCount) {
	for _, route := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, client.RouteCount{Route: route, Count: counts[route]})
	}
	return all
}
