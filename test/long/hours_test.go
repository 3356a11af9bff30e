package long

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/test/testkit"
)

const workflows = 1000

// TestHours sends new events at a steady rate to two replicas on one etcd, every tenth of them
// twice, for hours. Each of 12 parts of an hour has a reload, a compaction and a deploy of one
// replica; each hour ends with a defragmentation and a row of the table. No event may be lost, or
// run twice.
func TestHours(t *testing.T) {
	if *hours == 0 {
		t.Skip("runs with -hours 8")
	}
	length := time.Duration(*hours * float64(time.Hour))
	hour := min(time.Hour, length/4) // a run of less than four hours has four rows, too
	most := int(length.Seconds()+60) * *rate
	s := newService(t, most)
	member := testkit.StartEtcd(t, etcdProgram, 1, "--unsafe-no-fsync=false")[0]
	client := connect(t, member.Endpoint)
	d := &driver{t: t, etcd: member.Endpoint, service: s, most: most, answers: map[int]int{}}
	for range 2 {
		d.replicas = append(d.replicas, d.start())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() { d.send(ctx) })
	t.Logf(
		"| hour | events | p50 ms | p99 ms | MB of a replica | descriptors | goroutines | MB of etcd | keys | in use MB | other answers |")
	t.Logf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for began, row := time.Now(), 1; time.Since(began) < length; row++ {
		for part := range 12 {
			pause(time.Until(began.Add(time.Duration(row-1)*hour + time.Duration(part+1)*hour/12)))
			d.replicas[part%2].Signal(t, syscall.SIGHUP)
			compact(t, client)
			if part%6 == 5 {
				d.deploy(part / 6)
			}
		}
		if _, err := client.Defragment(context.Background(), member.Endpoint); err != nil {
			t.Error(err)
		}
		d.row(row, client, member.Pid())
	}
	cancel()
	sending.Wait()
	missing, twice := s.count(d.sent)
	t.Logf("%s: %d events; %d never ran, %d ran more than once", machine(), d.sent, missing, twice)
	if missing+twice > 0 {
		t.Fail()
	}
}

// driver sends events, and replaces the replicas that they go to.
type driver struct {
	t        *testing.T
	etcd     string
	service  *service
	most     int
	replicas []*replica

	mu         sync.Mutex
	doors      []string
	sent       int
	took       []time.Duration
	answers    map[int]int
	goroutines int
}

func (d *driver) start() *replica {
	r := startReplica(d.t, d.etcd, d.service.URL, "retention: 1h, replay_retention: 10m")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doors = append(d.doors, r.Addr)
	return r
}

// send sends events until ctx ends, and then waits for those under way.
func (d *driver) send(ctx context.Context) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	defer tick.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	for n := range d.most {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.mu.Lock()
		d.sent = n + 1
		d.mu.Unlock()
		under.Go(func() {
			d.bring(client, n)
			if n%10 == 0 {
				d.bring(client, n)
			}
		})
	}
}

// bring sends an event until it is settled, as a sender does.
func (d *driver) bring(client *http.Client, n int) {
	for try := 0; ; try++ {
		d.mu.Lock()
		door := d.doors[(n+try)%len(d.doors)]
		d.mu.Unlock()
		began := time.Now()
		status := deliver(client, door, n, workflows)
		d.mu.Lock()
		if status == http.StatusOK {
			d.took = append(d.took, time.Since(began))
		} else {
			d.answers[status]++
		}
		d.mu.Unlock()
		if status == http.StatusOK {
			return
		}
		pause(time.Second)
	}
}

// deploy replaces a replica: senders go to the new one, then the old one ends. Once an hour the old
// one ends by SIGQUIT, idle, because it tells its goroutines then.
func (d *driver) deploy(i int) {
	d.t.Helper()
	old := d.replicas[i]
	d.replicas[i] = d.start()
	d.mu.Lock()
	for at, door := range d.doors {
		if door == old.Addr {
			d.doors = append(d.doors[:at], d.doors[at+1:]...)
			break
		}
	}
	d.mu.Unlock()
	if i == 0 {
		old.Signal(d.t, syscall.SIGTERM)
		_ = old.ExitCode(d.t)
		return
	}
	pause(5 * time.Second) // what is under way there has ended
	old.Signal(d.t, syscall.SIGQUIT)
	_ = old.ExitCode(d.t)
	text, err := os.ReadFile(old.log)
	if err != nil {
		d.t.Fatal(err)
	}
	d.goroutines = strings.Count(string(text), "\ngoroutine ")
}

func (d *driver) row(n int, client *clientv3.Client, etcd int) {
	d.t.Helper()
	mb, descriptors := memory(d.t, d.replicas[0].Pid())
	etcdMB, _ := memory(d.t, etcd)
	keys, inUse := size(d.t, client)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t.Logf("| %d | %d | %s | %s | %d | %d | %d | %d | %d | %d | %v |", n, len(d.took), percentile(d.took, 500),
		percentile(d.took, 990), mb, descriptors, d.goroutines, etcdMB, keys, inUse, d.answers)
	d.took, d.answers = nil, map[int]int{}
}

// compact lets etcd forget what it had before now.
func compact(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now, err := client.Get(ctx, "x")
	if err == nil {
		_, err = client.Compact(ctx, now.Header.Revision)
	}
	if err != nil {
		t.Error(fmt.Errorf("compact: %w", err))
	}
}
