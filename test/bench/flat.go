//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// What is remembered must not be felt by what is new: a Hooklock and an etcd for each number of
// records, filled by deliveries, and then measured in turn.
const (
	leastRemembered = 1000
	budgetFlat      = 0.9 // rate at the most records, to that at the fewest
	fillers         = 256 // connections that fill
	fillTime        = time.Hour
	workflowRecords = 10 // of a workflow, as they are filled
)

// remembering is a pair that remembers so much.
type remembering struct {
	subject
	records            int
	filled             float64 // records a second
	hooklock, database [2]int64
	memory             [2]int64 // etcd's own, before and after the records came, and of the rounds
}

func (f *family) remembering(o *options, out io.Writer) error {
	if o.hooklock == "" {
		return errors.New("-remembered needs -hooklock")
	}
	up, err := f.startSelf(roleUpstream, "-service", o.service)
	if err != nil {
		return err
	}
	var all []*remembering
	for _, program := range []struct{ program, prefix string }{{o.hooklock, ""}, {o.before, before}} {
		for _, n := range o.remembered {
			if program.program == "" {
				continue
			}
			r, err := f.fill(o, program.program, program.prefix, up, n, out)
			if err != nil {
				return fmt.Errorf("%s%d records: %w", program.prefix, n, err)
			}
			all = append(all, r)
		}
	}
	fmt.Fprintf(out, "\n%d rounds of %s for each, in turn; 1 KiB POST over %d connections, each of another "+
		"workflow; median (min–max)\n\n", o.rounds, o.duration, o.connections)
	for n := -1; n < o.rounds; n++ {
		for i := range all {
			r := all[(i+max(n, 0))%len(all)]
			measured, err := f.measure(o, &r.subject, n)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if n >= 0 {
				r.rounds = append(r.rounds, measured)
			}
		}
	}
	return reportFlat(out, all, len(o.remembered))
}

// fill starts a pair and lets it remember records.
func (f *family) fill(o *options, program, prefix string, up *child, records int, out io.Writer) (*remembering, error) {
	name := prefix + strconv.Itoa(records)
	etcd, err := f.startSelf(roleEtcd, "-target", filepath.Join(f.dir, name), "-catchup",
		strconv.FormatUint(o.catchUp, 10))
	if err != nil {
		return nil, err
	}
	h, err := hooklockRun{program: program, upstream: up.addr, name: name + "-hooklock", log: quietLog,
		etcd: etcd.addr}.start(f)
	if err != nil {
		return nil, err
	}
	workflows := records / workflowRecords
	r := &remembering{records: records, subject: subject{
		name: fmt.Sprintf("%s%d records of %d workflows", prefix, records, workflows), child: h, beside: []*child{etcd},
		kind: kindSpread, workflows: workflows,
	}}
	if err := r.weigh(f.ctx, 0); err != nil {
		return nil, err
	}
	began := time.Now()
	filled, err := f.load(h.addr, loadOptions{
		kind: kindSpread, run: "fill", connections: min(fillers, workflows), duration: fillTime, requests: records,
		workflows: workflows,
	})
	if err != nil && filled.Requests < records*9/10 { // some may be refused while a machine has too much to do
		return nil, err
	}
	r.filled = float64(records) / time.Since(began).Seconds()
	fmt.Fprintf(out, "%s: filled at %.0f a second\n", r.name, r.filled)
	return r, r.weigh(f.ctx, 1)
}

// weigh notes what the pair takes, without its history: that is compacted, and the file keeps its
// size.
func (r *remembering) weigh(ctx context.Context, at int) error {
	etcd := r.beside[0]
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.addr}, DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	status, err := client.Status(ctx, etcd.addr)
	if err != nil {
		return err
	}
	if _, err := client.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	if status, err = client.Status(ctx, etcd.addr); err != nil {
		return err
	}
	r.database[at] = status.DbSizeInUse
	if r.memory[at], err = ownMemory(etcd.cmd.Process.Pid); err != nil {
		return err
	}
	r.hooklock[at], err = ownMemory(r.child.cmd.Process.Pid)
	return err
}

// ownMemory is what a process has that is no mapped file: etcd maps its database, and the kernel
// takes those pages back when it needs them.
func ownMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("RssAnon:"))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		return 0, errors.New("the kernel does not say RssAnon")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}

// reportFlat prints all, of which so many are of one program.
func reportFlat(out io.Writer, all []*remembering, sizes int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\trequests/s\tp50 ms\tp99 ms\tCPU µs/request: Hooklock\twith etcd\tHooklock MiB\tetcd "+
		"bytes/record: memory\tdisk")
	for _, r := range all {
		each := func(of [2]int64) float64 { return float64(of[1]-of[0]) / float64(r.records) }
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t%.0f\n", r.name, r.span(rateOf).text(0),
			r.span(p50Of).text(1), r.span(p99Of).text(1), r.span(ownOf).text(0), r.span(cpuOf).text(0),
			float64(r.hooklock[1])/(1<<20), each(r.memory), each(r.database))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, r := range all {
		fewest := all[i-i%sizes]
		if r == fewest {
			continue
		}
		fmt.Fprintf(out, "\n%s, against %s: %s × the rate (to reach: at least %.2f), %s × the p99 (at most %.2f), "+
			"%s × the CPU, Hooklock's own %s ×\n", r.name, fewest.name,
			ratio(&r.subject, &fewest.subject, rateOf).text(2), budgetFlat,
			ratio(&r.subject, &fewest.subject, p99Of).text(2), 1/budgetFlat,
			ratio(&r.subject, &fewest.subject, cpuOf).text(2), ratio(&r.subject, &fewest.subject, ownOf).text(2))
	}
	return nil
}
