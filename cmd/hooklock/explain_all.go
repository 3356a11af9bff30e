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

// samplesOf returns what is to be explained of a recorded delivery: itself, or its body at each
// route.
func (r *recorded) samplesOf(c *config.Config, header [][2]string) []*proxy.Sample {
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

func (r *reading) explainSample(s *proxy.Sample, now time.Time) *proxy.Explanation {
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
		for _, s := range all[i].samplesOf(now.loaded.Config, header) {
			deliveries++
			is := now.explainSample(s, at)
			if old == nil {
				t.Add(all[i].name, cmp.Or(is.Route, "none"), is.Workflow, eventIn(is), refusalsOf(is))
				continue
			}
			rows := explanationDifferences(old.explainSample(s, at), is)
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

// explanationDifferences returns what two configurations make of a delivery differently: the name
// of each thing, what it was and what it is.
func explanationDifferences(old, is *proxy.Explanation) [][3]string {
	rows := changedTexts(partsOf(old), partsOf(is))
	if old.Route != is.Route {
		return rows // all of its answers may be others
	}
	return append(rows, changedTexts(answersOf(old), answersOf(is))...)
}

// changedTexts compares texts by their names, which occur once in each of before and after.
func changedTexts(before, after [][2]string) (rows [][3]string) {
	was := map[string]string{}
	for _, part := range before {
		was[part[0]] = part[1]
	}
	for _, part := range after {
		if name, text := part[0], part[1]; was[name] != text {
			rows = append(rows, [3]string{name, was[name], text})
		}
		delete(was, part[0])
	}
	for _, part := range before {
		if text, gone := was[part[0]]; gone {
			rows = append(rows, [3]string{part[0], text, ""})
		}
	}
	return rows
}

// partsOf returns the names and texts of what is made of a delivery, before the answers.
func partsOf(x *proxy.Explanation) [][2]string {
	var limits, labels []string
	for _, l := range x.Limits {
		limits = append(limits, l.LimitName)
	}
	for _, l := range x.Labels {
		labels = append(labels, l.Name+"="+l.Value)
	}
	return [][2]string{
		{"route", x.Route}, {"signature", x.Signature}, {"handshake", x.Handshake}, {"workflow", x.Workflow},
		{"event", eventIn(x)}, {"event ID from", x.Source}, {"refused", refusalsOf(x)},
		{"limits", strings.Join(limits, ", ")}, {"labels", strings.Join(labels, " ")}, {"order", x.Order},
		{string(idem.DecisionParked), x.Park}, {"note", x.Note},
	}
}

// answersOf returns the answers by their decisions.
func answersOf(x *proxy.Explanation) (parts [][2]string) {
	for _, a := range x.Answers {
		parts = append(parts, [2]string{string(a.Decision), a.Text})
	}
	return parts
}
