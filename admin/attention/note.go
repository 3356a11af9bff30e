package attention

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/idem"
)

// Note is what a replica says of itself. It changes only when something happens there.
type Note struct {
	Replica   string    `json:"replica"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	NotReady  string    `json:"notReady,omitempty"`
	Config    Config    `json:"config"`
	Routes    []Route   `json:"routes,omitempty"` // those of which something is to be said
}

// Config is the configuration in force at a replica.
type Config struct {
	File    string   `json:"file"`
	SHA256  string   `json:"sha256"`            // of the file
	Refused []string `json:"refused,omitempty"` // why the changed file is not in force; empty: it is
	// Parts are hashes of the parts in force, by the name of the setting or route, without what is
	// a replica's own, such as addresses.
	Parts map[string]string `json:"settings"`
}

// Route is the state of a route at a replica.
type Route struct {
	Route string        `json:"route"`
	Spell *report.Spell `json:"spell,omitempty"` // in which it fails now; nil: it does not
	// Standings are how its sender counts failures; the zero value: it has counted nothing, or no
	// limit is known.
	report.Standings
	WrongEventID *client.WrongEventID `json:"wrongEventId,omitempty"`
}

// Replica is a replica by its note.
type Replica struct {
	Note
	idem.ReplicaNote
}

// ReadReplicas reads notes; those of a release whose notes cannot be read are left out.
func ReadReplicas(notes []idem.ReplicaNote) (all []Replica) {
	for _, n := range notes {
		one := Replica{ReplicaNote: n}
		if json.Unmarshal(n.Says, &one.Note) == nil && one.Note.Replica != "" {
			all = append(all, one)
		}
	}
	return all
}

// State returns how a replica is. One that has stopped may have a session for a moment yet.
func (r *Replica) State() string {
	switch {
	case r.Stopped:
		return client.ReplicaStopped
	case r.Alive:
		return client.ReplicaLive
	}
	return client.ReplicaGone
}

// Views returns the replicas for the API: those that are alive first, by name, then those that are
// gone, the latest first.
func Views(all []Replica) []client.Replica {
	i := slices.IndexFunc(all, func(r Replica) bool { return r.Self })
	views := make([]client.Replica, 0, len(all))
	for k := range all {
		r := &all[k]
		v := client.Replica{
			Replica: r.Replica, Version: r.Version, State: r.State(), Self: r.Self, Session: r.Session,
			NotReady:  r.NotReady,
			StartedAt: client.Time{Time: r.StartedAt}, SeenAt: client.Time{Time: r.At}, ConfigFile: r.Config.File,
			ConfigSHA256: r.Config.SHA256,
		}
		if i >= 0 && v.State == client.ReplicaLive {
			v.Differs = differentParts(all[i].Config.Parts, r.Config.Parts)
		}
		views = append(views, v)
	}
	order := []string{client.ReplicaLive, client.ReplicaGone, client.ReplicaStopped}
	slices.SortStableFunc(views, func(a, b client.Replica) int {
		byState, byName := slices.Index(order, a.State)-slices.Index(order, b.State), cmp.Compare(a.Replica, b.Replica)
		if a.State == client.ReplicaLive {
			return cmp.Or(byState, byName)
		}
		return cmp.Or(byState, b.SeenAt.Compare(a.SeenAt.Time), byName)
	})
	return views
}

// differentParts returns the names of the parts that are not equal, in their order.
func differentParts(one, other map[string]string) (names []string) {
	for name, hash := range one {
		if other[name] != hash {
			names = append(names, name)
		}
	}
	for name := range other {
		if _, both := one[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
