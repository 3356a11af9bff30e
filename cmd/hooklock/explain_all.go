package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/proxy"
)

// maxRecorded bounds the files of recorded deliveries that are read at one time.
const maxRecorded = 10_000

// recorded is a delivery in a file: a whole request, as `hooklock request` prints it, or
// a body alone.
type recorded struct {
	name   string
	sample proxy.Sample // Target is empty for a body alone
}

// readRecorded reads files, and the files in folders.
func readRecorded(names []string) ([]recorded, error) {
	var all []recorded
	for _, name := range names {
		files, err := filesAt(name)
		if err != nil {
			return nil, err
		}
		if len(all)+len(files) > maxRecorded {
			return nil, fmt.Errorf("more than %d files: give fewer at a time", maxRecorded)
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
			if err != nil {
				return nil, err
			}
			all = append(all, parseRecorded(file, text))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no file of a recorded delivery: name files, or a folder that has some")
	}
	return all, nil
}

// filesAt returns the name of a file, or those of the files in a folder.
func filesAt(name string) ([]string, error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // reading it says what is wrong
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	return files, nil
}

var requestLine = regexp.MustCompile(`^([A-Z]+) (/\S*) HTTP/1\.[01]\r?\n`)

// parseRecorded reads a request with its head, or else takes text for a body.
func parseRecorded(name string, text []byte) recorded {
	r := recorded{name: name, sample: proxy.Sample{Body: text}}
	first := requestLine.FindSubmatch(text)
	if first == nil {
		return r
	}
	r.sample.Method, r.sample.Target = string(first[1]), string(first[2])
	rest := text[len(first[0]):]
	for {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		name, value, found := strings.Cut(string(bytes.TrimSuffix(line, []byte("\r"))), ":")
		if !found {
			break
		}
		// of the body as it is stored
		if !slices.Contains([]string{"content-length", "transfer-encoding"}, strings.ToLower(name)) {
			r.sample.Header = append(r.sample.Header, [2]string{name, strings.TrimSpace(value)})
		}
	}
	r.sample.Body = rest
	return r
}

// samples returns what is to be explained of a recorded delivery: itself, or its body at each
// route.
func (r *recorded) samples(c *config.Config, header [][2]string) []*proxy.Sample {
	if r.sample.Target != "" {
		s := r.sample
		s.Header = slices.Concat(s.Header, header)
		return []*proxy.Sample{&s}
	}
	var all []*proxy.Sample
	for i := range c.Routes {
		m := &c.Routes[i].Match
		s := &proxy.Sample{Method: m.Methods[0], Target: targetOf(m.Path), Header: slices.Clone(header),
			Body: r.sample.Body}
		if len(m.Hosts) > 0 {
			s.Header = append(s.Header, [2]string{"Host", m.Hosts[0]})
		}
		if media := mediaOf(r.sample.Body); media != "" && !slices.ContainsFunc(header, func(h [2]string) bool {
			return strings.EqualFold(h[0], "Content-Type")
		}) {
			s.Header = append(s.Header, [2]string{"Content-Type", media})
		}
		all = append(all, s)
	}
	return all
}

// targetOf returns a path that a pattern matches: each variable has its name as its value.
func targetOf(pattern string) string {
	return strings.NewReplacer("{", "", "...}", "", "}", "").Replace(pattern)
}

// mediaOf guesses the type of a body.
func mediaOf(body []byte) string {
	switch text := bytes.TrimSpace(body); {
	case len(text) == 0:
		return ""
	case text[0] == '{' || text[0] == '[':
		return "application/json"
	case text[0] == '<':
		return "application/xml"
	case bytes.ContainsRune(text, '=') && !bytes.ContainsAny(text, " \n"):
		return "application/x-www-form-urlencoded"
	}
	return ""
}

// reading is a configuration with its rules.
type reading struct {
	loaded *config.Loaded
	rules  *proxy.Rules
}

func readRules(e *cli.Environment, path string) (r reading, err error) {
	if r.loaded, err = wiring.Load(e, path, nil, false); err == nil {
		r.rules, err = wiring.NewRules(r.loaded.Config)
	}
	return r, err
}

func (r *reading) explain(s *proxy.Sample, now time.Time) *proxy.Explanation {
	return r.rules.Explain(s, int(r.loaded.Config.Limits.RequestHeader), now)
}

// errDiffers is returned if two configurations do not decide alike.
var errDiffers = errors.New("the two configurations decide differently")

// explainAll prints what is made of each recorded delivery or, if old is not nil, what is made of
// it differently.
func explainAll(e *cli.Environment, now reading, old *reading, files []string, header [][2]string) error {
	all, err := readRecorded(files)
	if err != nil {
		return cli.Misuse(err)
	}
	t := &cli.Table{Out: e.Stdout, Screen: e.ScreenOf(e.Stdout), Head: []string{"FILE", "ROUTE", "WORKFLOW", "EVENT",
		"REFUSED"}, Cut: map[string]int{"FILE": 12, "WORKFLOW": 8, "EVENT": 8, "REFUSED": 16}}
	if old != nil {
		t.Head, t.Cut = []string{"FILE", "ROUTE", "WHAT", "OLD", "NEW"}, map[string]int{"FILE": 12, "OLD": 8, "NEW": 8}
	}
	at, deliveries, differing := time.Now(), 0, 0
	for i := range all {
		for _, s := range all[i].samples(now.loaded.Config, header) {
			deliveries++
			is := now.explain(s, at)
			if old == nil {
				t.Add(all[i].name, cmp.Or(is.Route, "none"), is.Workflow, eventIn(is), refusalsOf(is))
				continue
			}
			rows := differences(old.explain(s, at), is)
			for _, row := range rows {
				t.Add(all[i].name, cmp.Or(is.Route, "none"), row[0], row[1], row[2])
			}
			if len(rows) > 0 {
				differing++
			}
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	fmt.Fprintf(e.Stderr, "%s: %d decided differently\n", story.Count(deliveries, "delivery", "deliveries"), differing)
	if differing > 0 {
		return errDiffers
	}
	return nil
}

// eventIn names an event: by its ID, or by its payload.
func eventIn(x *proxy.Explanation) string {
	if x.EventID == "" && x.Key != "" {
		return "by its payload"
	}
	return x.EventID
}

func refusalsOf(x *proxy.Explanation) string {
	var all []string
	for _, bad := range x.Refusals {
		all = append(all, strconv.Itoa(bad.Status)+" "+bad.Code)
	}
	return strings.Join(all, ", ")
}

// differences returns what two configurations make of a delivery differently: the name of each
// thing, what it was and what it is.
func differences(old, is *proxy.Explanation) (rows [][3]string) {
	limits := func(x *proxy.Explanation) string {
		var all []string
		for _, l := range x.Limits {
			all = append(all, l.LimitName)
		}
		return strings.Join(all, ", ")
	}
	labels := func(x *proxy.Explanation) string {
		var all []string
		for _, l := range x.Labels {
			all = append(all, l.Name+"="+l.Value)
		}
		return strings.Join(all, " ")
	}
	answers := func(x *proxy.Explanation) map[string]string {
		all := map[string]string{}
		for _, a := range x.Answers {
			all[string(a.Decision)] = a.Text
		}
		return all
	}
	for _, row := range [][3]string{
		{"route", old.Route, is.Route}, {"signature", old.Signature, is.Signature},
		{"handshake", old.Handshake, is.Handshake}, {"workflow", old.Workflow, is.Workflow},
		{"event", eventIn(old), eventIn(is)}, {"event ID from", old.Source, is.Source},
		{"refused", refusalsOf(old), refusalsOf(is)}, {"limits", limits(old), limits(is)},
		{"labels", labels(old), labels(is)}, {"order", old.Order, is.Order},
		{string(idem.DecisionParked), old.Park, is.Park}, {"note", old.Note, is.Note},
	} {
		if row[1] != row[2] {
			rows = append(rows, row)
		}
	}
	if old.Route != is.Route {
		return rows // all of its answers may be others
	}
	was := answers(old)
	for _, a := range is.Answers {
		if name := string(a.Decision); was[name] != a.Text {
			rows = append(rows, [3]string{name, was[name], a.Text})
		}
		delete(was, string(a.Decision))
	}
	for _, a := range old.Answers {
		if text, gone := was[string(a.Decision)]; gone {
			rows = append(rows, [3]string{string(a.Decision), text, ""})
		}
	}
	return rows
}
