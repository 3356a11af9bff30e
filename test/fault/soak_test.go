package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hooklock/etcdlock/protocol"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// soaking is three replicas on three members, under traffic and faults.
type soaking struct {
	t    *testing.T
	etcd *cluster.Etcd
	up   *cluster.Upstream

	mu       sync.Mutex
	replicas []*cluster.Replica

	faults map[string]int
}

const soakDoc = "../../docs/proof.md"

// soakRoutes are the strategies that the traffic goes through.
var soakRoutes = []string{
	cluster.Route("fast", "lock: {release_delay: 1s}"),
	cluster.Route("queue", "lock: {strategy: wait, wait_timeout: 3s, release_delay: 0s}"),
	cluster.Route("parked",
		"lock: {release_delay: 0s}, park: {enabled: true, after: 300ms, max_age: 1h, attempts: 1000}"),
	cluster.Route("parkedqueue",
		"lock: {strategy: wait, wait_timeout: 3s, release_delay: 0s}, park: {enabled: true, on: [locked, slow, unreachable, unknown, failed], after: 200ms, attempts: 1000}"),
	cluster.Route("attach",
		"lock: {strategy: wait, wait_timeout: 3s, release_delay: 0s}, idempotency: {in_flight: attach}"),
}

var soakNames = []string{"fast", "queue", "attach", "parked", "parkedqueue"}

// TestSoak runs with -soak 10m. Nothing may be lost, run twice once it was settled, or be left
// behind.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("runs with -soak 10m")
	}
	s := &soaking{t: t, etcd: cluster.StartEtcd(t, programs, 3), up: cluster.NewUpstream(t), faults: map[string]int{}}
	s.up.Always(func(x *cluster.Exchange) bool {
		d := time.Duration(2+rand.IntN(6)) * time.Millisecond
		if rand.IntN(100) == 0 { // so that faults meet calls that are under way
			d = time.Duration(500+rand.IntN(2000)) * time.Millisecond
		}
		return work(d)(x)
	})
	for i := range 3 {
		s.replicas = append(s.replicas, s.start(i))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var traffics []*cluster.Traffic
	var waits []func()
	for _, route := range soakNames {
		traffic := &cluster.Traffic{Senders: 5, Workflows: 6, Route: route, Pause: 20 * time.Millisecond,
			Doors: s.doors}
		traffics, waits = append(traffics, traffic), append(waits, traffic.Start(ctx))
	}
	began := time.Now()
	for time.Since(began) < *soak {
		s.strike()
		for _, traffic := range traffics {
			traffic.AwaitMore(t, 5)
		}
	}
	cancel()
	for _, wait := range waits {
		finish(t, wait)
	}
	for _, traffic := range traffics {
		traffic.AwaitParked(t, s.up)
	}
	figures := s.count(time.Since(began), traffics)
	figures = append(figures, s.checkNothingIsLeft()...)
	text := "| | |\n| --- | --- |\n"
	for _, f := range figures {
		t.Log(f[0] + ": " + f[1])
		text += "| " + f[0] + " | " + f[1] + " |\n"
	}
	section(t, soakDoc, "figures", text, false)
}

func (s *soaking) start(i int) *cluster.Replica {
	s.t.Helper()
	return cluster.StartReplica(s.t, programs, cluster.Config{
		Endpoints: s.etcd.Endpoints(i), Upstream: s.up.Addr, SessionTTL: ttl, Routes: strings.Join(soakRoutes, ""),
	})
}

func (s *soaking) doors() (doors []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		doors = append(doors, r.Door)
	}
	return doors
}

// read looks for what no fault explains: etcd loses members here, and nothing that it has
// committed.
func (s *soaking) read(r *cluster.Replica) {
	for _, line := range []string{`"panic"`, `"etcd.went_back"`} {
		if n := cluster.Count(r.Stderr, line); n > 0 {
			s.t.Errorf("%d lines with %s", n, line)
		}
	}
}

// replace puts a new process in the place of replica i, which has ended.
func (s *soaking) replace(i int) {
	s.read(s.replicas[i])
	r := s.start(i)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[i] = r
}

func (s *soaking) lasting(low, high time.Duration) {
	timer := time.NewTimer(low + rand.N(high-low))
	defer timer.Stop()
	<-timer.C
}

// strike breaks one thing, for a while, and mends it.
func (s *soaking) strike() {
	s.lasting(500*time.Millisecond, 2*time.Second)
	i := rand.IntN(3)
	replica, wire := s.replicas[i], s.etcd.Wires[rand.IntN(3)]
	var what string
	switch n := rand.IntN(23); {
	case n >= 20:
		what = "upstream away"
		s.up.Leave()
		s.lasting(time.Second, 5*time.Second)
		s.up.Return()
	case n < 4:
		what = "replica killed"
		replica.Kill()
		s.replace(i)
	case n < 6:
		what = "replica ended (SIGTERM)"
		replica.Signal(s.t, syscall.SIGTERM)
		if code := replica.ExitCode(s.t); code != 0 {
			s.t.Errorf("after SIGTERM a replica ended with code %d", code)
		}
		s.replace(i)
	case n < 9:
		what = "replica frozen"
		replica.Freeze(s.t)
		s.lasting(time.Second, 6*time.Second)
		replica.Thaw(s.t)
	case n < 11:
		what = "leader killed"
		m := s.etcd.Members[s.etcd.Leader()]
		m.Kill()
		s.lasting(time.Second, 3*time.Second)
		m.Restart(s.t)
		m.AwaitHealthy(s.t)
	case n < 13:
		what = "leader frozen"
		m := s.etcd.Members[s.etcd.Leader()]
		m.Freeze(s.t)
		s.lasting(time.Second, 5*time.Second)
		m.Thaw(s.t)
	case n < 15:
		what = "endpoint blackholed"
		wire.Blackhole(true)
		s.lasting(time.Second, 5*time.Second)
		wire.Blackhole(false)
	case n < 17:
		what = "answers lost"
		wire.DropAnswers(true)
		s.lasting(200*time.Millisecond, 2*time.Second)
		wire.Reset()
		wire.DropAnswers(false)
	case n < 19:
		what = "all connections reset"
		for _, w := range s.etcd.Wires {
			w.Reset()
		}
	default:
		what = "all of etcd frozen for 5 s"
		s.etcd.FreezeAll()
		s.lasting(5*time.Second, 5*time.Second+1)
		s.etcd.ThawAll()
	}
	s.faults[what]++
}

// count checks what was promised to the senders and returns the figures.
func (s *soaking) count(took time.Duration, traffics []*cluster.Traffic) (figures [][2]string) {
	s.t.Helper()
	row := func(name, format string, a ...any) {
		figures = append(figures, [2]string{name, fmt.Sprintf(format, a...)})
	}
	row("time", "%v", took.Round(time.Second))
	var names []string
	total := 0
	for name, n := range s.faults {
		names = append(names, fmt.Sprintf("%s %d", name, n))
		total += n
	}
	slices.Sort(names)
	row("faults", "%d: %s", total, strings.Join(names, ", "))
	var all cluster.Result
	deliveries := 0
	answers := map[string]int{}
	for _, traffic := range traffics {
		r := traffic.Check(s.t, s.up)
		all.Settled, all.Unrecorded = all.Settled+r.Settled, all.Unrecorded+r.Unrecorded
		all.Repeated, all.Reran, all.Parked = all.Repeated+r.Repeated, all.Reran+r.Reran, all.Parked+r.Parked
		n, saw := traffic.Saw()
		deliveries += n
		for what, n := range saw {
			answers[what] += n
		}
	}
	row("deliveries", "%d", deliveries)
	row("events", "%d; each got its answer in the end, %d of them before its outcome was recorded",
		all.Settled+all.Unrecorded, all.Unrecorded)
	row("events that were accepted first (`park`)", "%d; each took effect, in the order of its sender and workflow",
		all.Parked)
	kinds := map[int][]string{}
	var counts []int
	for what, n := range answers {
		kinds[n] = append(kinds[n], what)
		counts = append(counts, n)
	}
	slices.Sort(counts)
	var list []string
	for _, n := range slices.Backward(slices.Compact(counts)) {
		for _, what := range kinds[n] {
			list = append(list, fmt.Sprintf("%s %d", what, n))
		}
	}
	s.t.Logf("answers: %s", strings.Join(list, ", "))
	overlaps, stale := s.up.Overlaps()
	row("effects at the upstream", "%d", len(s.up.Effects()))
	row("events that took effect more than once: nobody knew of the first attempt (`on_unknown: retry`)", "%d",
		all.Repeated)
	row("events that ran again after they were settled", "%d", all.Reran)
	row("calls of one workflow that overlapped at the upstream",
		"%d; effects refused for their token %d; calls that came after a newer holder's %d", len(overlaps), stale,
		s.up.Late())
	for _, o := range overlaps {
		s.t.Log("overlap: " + o)
	}
	return figures
}

// connectionsClosed waits until a process has no more files and connections than limit: those that
// idle are closed after a few seconds. It has one to each member of etcd, where a fresh process has
// the first alone.
func (s *soaking) connectionsClosed(r *cluster.Replica, limit int) {
	s.t.Helper()
	late := time.After(cluster.Patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		n := openFDs(s.t, r.Pid())
		if n <= limit {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Errorf("%d files and connections are open after %v in quiet:\n%s", n, cluster.Patience,
				openFiles(r.Pid()))
			return
		}
	}
}

// checkNothingIsLeft looks for what faults may have left behind: in etcd, and in the processes.
func (s *soaking) checkNothingIsLeft() (figures [][2]string) {
	s.t.Helper()
	row := func(name, format string, a ...any) {
		figures = append(figures, [2]string{name, fmt.Sprintf(format, a...)})
	}
	journal := cluster.NewJournal(s.t, s.etcd.Client, "/hooklock")
	for _, kind := range []string{"locks/", "queue/", "holds/", "parked/", "requests/", "ages/"} {
		testkit.Until(s.t, "nothing is left below "+kind, func() bool { return len(journal.Left(kind)) == 0 })
	}
	testkit.Until(s.t, "the sessions are those of the processes that live", func() bool {
		return len(journal.Left("sessions/")) == len(s.replicas)
	})
	fresh := s.start(0)
	for _, route := range soakNames {
		a := cluster.NewSender().Send(context.Background(), fresh.Door,
			cluster.Delivery{Route: route, Workflow: "fresh", Event: "fresh-" + route})
		if !a.Settled() && !a.Parked() {
			s.t.Errorf("a new replica answers %v", a)
		}
	}
	files := openFDs(s.t, fresh.Pid())
	var most int
	for _, r := range s.replicas {
		s.read(r)
		s.connectionsClosed(r, files+4)
		most = max(most, openFDs(s.t, r.Pid()))
	}
	s.t.Logf("files and connections: %d in a fresh process, at most %d in those that went through it", files, most)
	least, most := s.checkGoroutines(fresh)
	row("goroutines", "%d, at most %d", least, most)
	testkit.Until(s.t, "no session is left", func() bool { return len(journal.Left("sessions/")) == 0 })
	all, empty := s.etcd.Leases()
	records := len(journal.Left(protocol.KindRecords))
	row("left in etcd", "0 locks, 0 waiting, 0 holds, 0 sessions; %d records on %d leases, %d leases without a record",
		records, all-empty, empty)
	return figures
}

// checkGoroutines ends all processes and compares what ran in them. Those that went through the
// faults have connections to all members of etcd; a goroutine of which there are many more than
// that explains is one that does not end.
func (s *soaking) checkGoroutines(fresh *cluster.Replica) (least, most int) {
	s.t.Helper()
	s.lasting(21*time.Second, 22*time.Second) // fasthttp lets idle workers go after 10 s, and looks every 10 s
	least, by := goroutines(s.t, fresh)
	for _, r := range s.replicas {
		n, other := goroutines(s.t, r)
		most = max(most, n)
		for what, n := range other {
			if n > 3*by[what]+5 {
				s.t.Errorf("%d goroutines of %s; %d in a fresh process", n, what, by[what])
			}
		}
		if n > least+60 {
			s.t.Errorf("%d goroutines are left, %d in a fresh process: %v, fresh: %v", n, least, other, by)
		}
	}
	return least, most
}

// openFDs is the number of open files and connections of a process.
func openFDs(tb testing.TB, pid int) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		tb.Fatalf("look at the files of a process: %v", err)
	}
	return len(entries)
}

// openFiles shows what they are, connections with their addresses and states.
func openFiles(pid int) string {
	var b strings.Builder
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	table, _ := os.ReadFile("/proc/net/tcp")
	for _, e := range entries {
		to, _ := os.Readlink(dir + "/" + e.Name())
		b.WriteString(to)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			for line := range strings.Lines(string(table)) {
				if f := strings.Fields(line); len(f) > 9 && f[9] == strings.TrimSuffix(inode, "]") {
					b.WriteString(" " + f[1] + " " + f[2] + " state " + f[3])
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// goroutines ends a process (SIGQUIT) and counts the goroutines that it had, by what started them.
func goroutines(tb testing.TB, r *cluster.Replica) (all int, by map[string]int) {
	tb.Helper()
	r.Signal(tb, syscall.SIGQUIT)
	_ = r.ExitCode(tb)
	by = map[string]int{}
	for _, line := range r.Stderr.Lines() {
		if rest, ok := strings.CutPrefix(line, "created by "); ok {
			what, _, _ := strings.Cut(rest, " in goroutine")
			by[what]++
			all++
		}
	}
	return all, by
}
