package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hooklock/admin/attention"
	"hooklock/admin/report"
	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
)

// describeProcess returns what this process says of itself to operators at the other ones. It
// changes only if something has happened here. It implements etcdlock.Options.Describe.
func (s *Service) describeProcess() []byte {
	n := attention.Note{Replica: s.replica, Version: cli.BuildVersion(),
		StartedAt: s.startedAt.UTC().Truncate(time.Second), Config: s.inForce.describeConfig()}
	if err := s.checkReady(); err != nil {
		n.NotReady = err.Error()
	}
	wrong := map[string]int{}
	rates := s.report.Rates()
	for i := range rates {
		wrong[rates[i].Route] = i
	}
	for _, h := range s.report.Health() {
		one := attention.Route{Route: h.Route, Spell: h.Spell, Standings: h.Standings,
			WrongEventID: rates[wrong[h.Route]].WrongEventID}
		if one.Spell == nil && one.Standings == (report.Standings{}) && one.WrongEventID == nil {
			continue
		}
		n.Routes = append(n.Routes, one)
	}
	text, err := json.Marshal(&n)
	if err != nil {
		return []byte("{}") // of texts, numbers and times: it does not happen
	}
	return text
}

// describeConfig returns the configuration in force, for other replicas.
func (f *inForce) describeConfig() attention.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.described.Parts == nil {
		f.described = attention.Config{File: f.file, SHA256: f.fileHash(), Parts: partsOf(f.loaded)}
	}
	d := f.described
	if f.stale {
		d.Refused = f.refused
	}
	return d
}

// partsOf returns hashes of the settings and routes in force, without what is a replica's own.
func partsOf(loaded *config.Loaded) map[string]string {
	parts := map[string]string{}
	var text strings.Builder
	settings := map[string]any{}
	if loaded.Show(&text, false) != nil || yaml.Unmarshal([]byte(text.String()), &settings) != nil {
		return parts
	}
	add := func(name string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			return
		}
		sum := sha256.Sum256(text)
		parts[name] = hex.EncodeToString(sum[:6])
	}
	for name, value := range settings {
		switch of, isMap := value.(map[string]any); {
		case name == "listen", name == "health", name == "data_dir": // addresses and folders of this machine
		case name == "routes":
			addRoutes(value, add)
		case isMap:
			for key, one := range of {
				if key != "listen" {
					add(name+"."+key, one)
				}
			}
		default:
			add(name, value)
		}
	}
	return parts
}

// addRoutes adds each route by its name.
func addRoutes(routes any, add func(name string, value any)) {
	all, _ := routes.([]any)
	for _, one := range all {
		route, _ := one.(map[string]any)
		if name, is := route["name"].(string); is {
			add("route "+name, route)
		}
	}
}
