// Package twins explores the transactions that make events of one body one event, as package model
// does those of deliveries: every order of steps, within small bounds, of processes that ask which
// event a delivery is, answers that get lost while their transaction is applied later or never,
// windows and names that end, events that ran under their own key before, and people who erase. It
// is apart because no transaction of an execution compares a key of theirs: what an event is called
// is decided before it is claimed, and one key runs once (package model).
package twins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// promise is a sentence that holds after every step.
type promise string

const (
	oneEvent  promise = "events with one body within the window of the first are one event"
	sameEvent promise = "an event ID names one event until its name ends"
	ownEvent  promise = "an event that ran under its own key is that event"
	inWindow  promise = "no event is the first one because it came again"
	noErased  promise = "no event becomes one with an event that is not the first any more"
)

const (
	events    = 3
	processes = 2
	first     = 0 // the key of the first event; then the aliases, then the records
	alias0    = 1
	record0   = alias0 + events
	keys      = record0 + events
)

// revision is one of the store; 0 = absent.
type revision uint8

type key struct {
	modified revision
	event    uint8 // that it names, from 1
}

// txn is a transaction with what its sender knows.
type txn struct {
	join  bool
	event uint8 // from 1; 0 = no transaction
	to    uint8 // the event that it joins
	at    revision
}

type process struct {
	event uint8 // of the delivery that it asks about; 0 = none
	join  uint8 // it has read this as the first event; 0 = it has read nothing
	at    revision
}

// state is everything at one moment; it has no pointers.
type state struct {
	clock     revision
	keys      [keys]key
	processes [processes]process
	lost      txn
	left      budget
	// what was answered: the event that each one is, 0 = it was not asked about since its name
	// ended; and whether that was in the window that is open now
	answered [events]uint8
	now      [events]bool
}

// budget is how often something may happen.
type budget struct{ deliveries, lost, windows, names, records, erase uint8 }

type scenario struct {
	name string
	budget
}

func scenarios() []scenario {
	return []scenario{
		{"twins at once", budget{deliveries: 4, lost: 1}},
		{"the window ends", budget{deliveries: 4, lost: 1, windows: 2}},
		{"names end", budget{deliveries: 4, lost: 1, windows: 1, names: 2}},
		{"it ran before", budget{deliveries: 3, lost: 1, windows: 1, records: 2}},
		{"a person erases", budget{deliveries: 3, lost: 1, windows: 1, erase: 1}},
	}
}

type model struct {
	scenario
	drops    string // the compare that is left out
	broken   promise
	compares map[string]bool
}

var layout = protocol.NewLayout("m")

func twin(event uint8) *idem.Twin {
	return &idem.Twin{Route: "r", EventID: fmt.Sprint(event), Scope: idem.Scope{Workflow: "w", Key: keyOf(event)}}
}

func keyOf(event uint8) idem.Key { return idem.MakeKey(uint64(event), [16]byte{event}) }

// refs are the indexes of the keys.
var refs = func() map[string]int {
	at := map[string]int{}
	for e := range uint8(events) {
		k, _ := layout.Twin(twin(e + 1))
		at[k.First], at[k.Alias], at[k.Record] = first, alias0+int(e), record0+int(e)
	}
	return at
}()

// op is t as etcdlock/protocol makes it.
func (t *txn) op() protocol.Op {
	k, _ := layout.Twin(twin(t.event))
	names := func(event uint8) protocol.Leased { return protocol.Leased{Value: []byte{event}} }
	if t.join {
		return protocol.JoinFirst(k, int64(t.at), "joined", names(t.to), names(0))
	}
	return protocol.NameFirst(k, names(t.event), names(t.event))
}

func (t *txn) String() string {
	if t.join {
		return fmt.Sprintf("event %d joins %d", t.event, t.to)
	}
	return fmt.Sprintf("event %d as the first", t.event)
}

func compareOf(t *txn, is *pb.Compare) string {
	what := "alias"
	switch at := refs[string(is.Key)]; {
	case at == first:
		what = "first"
	case at >= record0:
		what = "record"
	}
	if t.join {
		return "join " + what
	}
	return "name " + what
}

// apply applies t, if what it compares holds.
func (m *model) apply(s *state, t *txn) bool {
	request := t.op().GetRequestTxn()
	for _, is := range request.Compare {
		name, at := compareOf(t, is), int64(s.keys[refs[string(is.Key)]].modified)
		m.compares[name] = true
		if want := is.GetModRevision() + is.GetCreateRevision(); at != want && m.drops != name {
			return false
		}
	}
	switch {
	case t.join && s.keys[first].event != t.to:
		m.broke(noErased)
	case !t.join && s.keys[record0+int(t.event)-1].modified != 0:
		m.broke(inWindow)
	}
	s.clock++
	for _, op := range request.Success {
		put := op.GetRequestPut()
		if at, ok := refs[string(put.Key)]; ok {
			s.keys[at] = key{s.clock, put.Value[0]}
		}
	}
	return true
}

func (m *model) broke(p promise) {
	if m.broken == "" {
		m.broken = p
	}
}

// answer tells process p which event its delivery is.
func (m *model) answer(s *state, p int, is uint8) {
	e := s.processes[p].event - 1
	s.processes[p] = process{}
	if was := s.answered[e]; was != 0 && was != is {
		m.broke(sameEvent)
	}
	if s.keys[record0+int(e)].modified != 0 && is != e+1 && s.answered[e] == 0 {
		m.broke(ownEvent)
	}
	if s.answered[e] == 0 && s.keys[first].event == is {
		s.now[e] = true
	}
	s.answered[e] = is
	for other := range events {
		if s.now[e] && s.now[other] && s.answered[other] != is {
			m.broke(oneEvent)
		}
	}
}

type visit func(n state, what string)

func (m *model) successors(s *state, to visit) {
	if t := s.lost; t.event != 0 {
		n := *s
		if n.lost = (txn{}); m.apply(&n, &t) {
			to(n, "late: "+t.String())
		}
	}
	m.world(s, to)
	for p := range processes {
		m.process(s, p, to)
	}
}

// world: deliveries come, leases end, events run at replicas that do not know of twins, a person
// erases.
func (m *model) world(s *state, to visit) {
	once := func(left func(*state) *uint8, what string, change func(n *state)) {
		n := *s
		if l := left(&n); *l > 0 {
			*l--
			change(&n)
			to(n, what)
		}
	}
	for p := range processes {
		for e := range uint8(events) {
			if s.processes[p].event == 0 {
				once(func(n *state) *uint8 { return &n.left.deliveries }, fmt.Sprintf("event %d comes to %d", e+1, p),
					func(n *state) { n.processes[p].event = e + 1 })
			}
		}
	}
	if s.keys[first].modified != 0 {
		once(func(n *state) *uint8 { return &n.left.windows }, "the window ends", func(n *state) {
			n.keys[first], n.now = key{}, [events]bool{}
		})
	}
	for e := range events {
		if s.keys[alias0+e].modified != 0 && s.keys[first].event != uint8(e+1) { // it outlives the window
			once(func(n *state) *uint8 {
				return &n.left.names
			}, fmt.Sprintf("the name of %d ends", e+1), func(n *state) {
				n.keys[alias0+e], n.answered[e], n.now[e] = key{}, 0, false
			})
		}
		if s.keys[record0+e].modified == 0 && s.answered[e] == 0 && s.keys[alias0+e].modified == 0 {
			once(func(n *state) *uint8 {
				return &n.left.records
			}, fmt.Sprintf("event %d has run", e+1), func(n *state) {
				n.clock++
				n.keys[record0+e] = key{n.clock, uint8(e + 1)}
			})
		}
		once(func(n *state) *uint8 { return &n.left.erase }, fmt.Sprintf("a person erases %d", e+1), func(n *state) {
			k, _ := layout.Twin(twin(1))
			drop := protocol.DropFirst(k.First, int64(n.keys[first].modified)).GetRequestTxn()
			for _, at := range refs {
				if at < record0 && n.keys[at].event == uint8(e+1) &&
					(at != first || string(drop.Success[0].GetRequestDeleteRange().Key) == k.First) {
					n.keys[at] = key{}
				}
			}
			n.answered, n.now = [events]uint8{}, [events]bool{}
		})
	}
}

// process asks which event its delivery is, as etcdlock/claim does.
func (m *model) process(s *state, p int, to visit) {
	q := s.processes[p]
	if q.event == 0 {
		return
	}
	t := txn{event: q.event, join: q.join != 0, to: q.join, at: q.at}
	what := fmt.Sprintf("%d: %s", p, &t)
	n := *s
	switch applied := m.apply(&n, &t); {
	case applied && t.join:
		m.answer(&n, p, t.to)
	case applied:
		m.answer(&n, p, t.event)
	case t.join: // it asks again
		n.processes[p] = process{event: q.event}
	default:
		switch is := n.keys[alias0+int(q.event)-1]; {
		case is.modified != 0:
			m.answer(&n, p, is.event)
		case n.keys[record0+int(q.event)-1].modified != 0:
			m.answer(&n, p, q.event)
		default:
			n.processes[p].join, n.processes[p].at = n.keys[first].event, n.keys[first].modified
		}
	}
	to(n, what)
	if s.left.lost > 0 && s.lost.event == 0 {
		n := *s
		n.left.lost--
		n.lost, n.processes[p] = t, process{event: q.event}
		to(n, what+", answer lost")
	}
}

// explore visits every state that can be reached, breadth first, until a promise breaks.
func (m *model) explore() (states int, trace []string) {
	type node struct {
		parent int
		what   string
	}
	start := state{left: m.budget}
	known, front, nodes := map[state]bool{start: true}, []state{start}, []node{{-1, ""}}
	for at := 0; at < len(front) && m.broken == ""; at++ {
		from := front[at]
		m.successors(&from, func(n state, what string) {
			if broken := m.broken != ""; !known[n] && (!broken || trace == nil) {
				known[n] = true
				front, nodes = append(front, n), append(nodes, node{at, what})
				if broken {
					for i := len(nodes) - 1; i > 0; i = nodes[i].parent {
						trace = append(trace, nodes[i].what)
					}
				}
			}
		})
	}
	slices.Reverse(trace)
	return len(front), trace
}

func TestEveryScenarioOfTwinsKeepsEveryPromise(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			m := &model{scenario: sc, compares: map[string]bool{}}
			states, trace := m.explore()
			if m.broken != "" {
				t.Errorf("%s\n    %s", m.broken, strings.Join(trace, "\n    "))
			}
			t.Logf("%d states", states)
		})
	}
}

// brokenBy names the scenario that needs each compare.
var brokenBy = map[string]string{
	"name alias":  "the window ends",
	"name first":  "twins at once",
	"name record": "it ran before",
	"join first":  "a person erases",
	"join record": "it ran before",
}

// redundant says why a compare is kept that nothing needs.
var redundant = map[string]string{
	"join alias": "two joins of an event to the same first one do no harm, but its ID is new to one of them alone",
}

func TestEveryCompareOfTwinsIsNeeded(t *testing.T) {
	all := &model{scenario: scenarios()[0], compares: map[string]bool{}}
	all.explore()
	for name := range all.compares {
		i := slices.IndexFunc(scenarios(), func(sc scenario) bool { return sc.name == brokenBy[name] })
		switch {
		case redundant[name] != "":
			continue
		case i < 0:
			t.Errorf("nothing shows what %q is needed for: name a scenario in brokenBy, or in redundant why it is kept",
				name)
			continue
		}
		m := &model{scenario: scenarios()[i], drops: name, compares: map[string]bool{}}
		states, trace := m.explore()
		if m.broken == "" {
			t.Errorf("left out: %s. Nothing broke in %q (%d states)", name, m.name, states)
		}
		t.Logf("left out: %s (%q)\n    %s\n        %s", name, m.name, m.broken, strings.Join(trace, "\n        "))
	}
}
