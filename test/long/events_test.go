package long

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/test/testkit"
)

// TestManyEvents lets one replica remember more and more events on an etcd with the quota that
// etcd's page asks for, and says at each fifth of them what people and senders wait for. The first
// thing that is full ends it.
func TestManyEvents(t *testing.T) {
	if *events == 0 {
		t.Skip("runs with -events 5000000")
	}
	s := newService(t, *events)
	member := testkit.StartEtcd(t, etcdProgram, 1, "--unsafe-no-fsync=false", "--quota-backend-bytes", "8589934592")[0]
	client := connect(t, member.Endpoint)
	r := startReplica(t, member.Endpoint, s.URL, "retention: 168h, replay_retention: 10m")
	t.Logf(
		"| events | a second | MB of the replica | MB of etcd | keys | in use MB | events s | show s | a duplicate ms | restart s | backup s | backup MB |")
	t.Logf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	senders := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer senders.CloseIdleConnections()
	for done, step := 0, *events/5; done < *events; done += step {
		began := time.Now()
		if failed := fill(senders, r.Addr, done, done+step); failed > 0 {
			keys, inUse := size(t, client)
			t.Fatalf("%d of the events from %d on were not answered 200: etcd has %d keys, %d MB in use", failed, done,
				keys, inUse)
		}
		each := float64(step) / time.Since(began).Seconds()
		mb, _ := memory(t, r.Pid())
		etcdMB, _ := memory(t, member.Pid())
		keys, inUse := size(t, client)
		list := command(t, r, "events", "--limit", "20")
		show := command(t, r, "show", strconv.Itoa(done+step/2))
		again := time.Now()
		if status := deliver(senders, r.Addr, done/2, workflows); status != http.StatusOK {
			t.Errorf("a duplicate is answered %d", status)
		}
		duplicate := time.Since(again)
		saving, saved := backUp(t, client)
		r.Signal(t, syscall.SIGTERM)
		_ = r.ExitCode(t)
		starting := time.Now()
		r = startReplica(t, member.Endpoint, s.URL, "retention: 168h, replay_retention: 10m")
		t.Logf("| %d | %.0f | %d | %d | %d | %d | %.2f | %.2f | %.1f | %.2f | %.1f | %d |", done+step, each, mb, etcdMB,
			keys, inUse,
			list.Seconds(), show.Seconds(), float64(duplicate)/float64(time.Millisecond),
			time.Since(starting).Seconds(),
			saving.Seconds(), saved/1_000_000)
	}
	missing, twice := s.count(*events)
	t.Logf("%s: %d events; %d never ran, %d ran more than once", machine(), *events, missing, twice)
	if missing+twice > 0 {
		t.Fail()
	}
}

// fill sends the events from one number to another, 64 at a time, and returns how many were not
// answered 200 in ten tries.
func fill(client *http.Client, door string, from, to int) (failed int64) {
	var next, bad atomic.Int64
	next.Store(int64(from))
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for n := next.Add(1) - 1; n < int64(to); n = next.Add(1) - 1 {
				status := 0
				for range 10 {
					if status = deliver(client, door, int(n), workflows); status == http.StatusOK {
						break
					}
					pause(100 * time.Millisecond)
				}
				if status != http.StatusOK {
					bad.Add(1)
				}
			}
		})
	}
	senders.Wait()
	return bad.Load()
}

// backUp reads a snapshot of etcd as a backup does, and returns how long that took and its size.
func backUp(t *testing.T, client *clientv3.Client) (took time.Duration, bytes int64) {
	t.Helper()
	began := time.Now()
	snapshot, err := client.Snapshot(context.Background())
	if err == nil {
		bytes, err = io.Copy(io.Discard, snapshot)
		err = errors.Join(err, snapshot.Close())
	}
	if err != nil {
		t.Errorf("back up etcd: %v", err)
	}
	return time.Since(began), bytes
}

// command runs the command line against a replica, and returns how long it took.
func command(t *testing.T, r *replica, args ...string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, hooklockProgram, append(args, "--admin", "http://"+r.Admin)...)
	began := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("hooklock %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(began)
}
