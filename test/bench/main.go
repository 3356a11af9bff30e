//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are what a run was asked for.
type options struct {
	duration    time.Duration // of one round of one subject
	rounds      int
	connections int
	outages     int // 0 leaves them out
	flows       int // workflows of an outage
	only        *regexp.Regexp
	hooklock    string // program; "" leaves it out
	before      string // another one to compare it with; "" leaves it out
	nginx       string // program; "" leaves it out
	service     string // what the upstream says that it is
	// program of other ways to protect an event, which are compared instead; "" compares proxies
	peers      string
	catchUp    uint64        // entries of its log that an etcd of -remembered keeps in memory; 0 = its default
	far        time.Duration // how much later the answers of the external member come
	remembered []int         // records that are measured with, instead; empty compares proxies
	as         string        // which part this process is
	load       loadOptions
	target     string // of -as reverseproxy and fasthttp, or a folder
}

func main() {
	// the kernel ends children when the thread that started them ends, and this one lives as long
	// as the process
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("stopped by a signal; nothing was measured to its end")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

// run is main without the process.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	switch o.as {
	case "":
		return stage(ctx, o, out)
	case roleUpstream:
		return serveUpstream(ctx, o.service, out)
	case roleReverseProxy:
		return serveReverseProxy(ctx, o.target, out)
	case roleFasthttp:
		return serveFasthttpProxy(ctx, o.target, out)
	case roleEtcd:
		return serveEtcd(ctx, o.target, o.catchUp, o.far, out)
	case roleLoad:
		return runLoad(ctx, o.load, out)
	}
	return fmt.Errorf("-as %s: want %s", o.as,
		strings.Join([]string{roleUpstream, roleReverseProxy, roleFasthttp, roleEtcd, roleLoad}, ", "))
}

func parse(args []string) (*options, error) {
	var o options
	var short bool
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.DurationVar(&o.duration, "duration", 3*time.Second, "of one round of one subject")
	f.IntVar(&o.rounds, "rounds", 5, "how often each subject is measured")
	f.IntVar(&o.connections, "connections", 32, "at the same time, each with one request at a time")
	f.IntVar(&o.outages, "outages", 3, "how often the upstream goes away and comes back; 0 leaves it out")
	f.IntVar(&o.flows, "flows", 1000, "workflows of an outage, with 10 events each")
	f.BoolVar(&short, "short", false, "3 rounds of 1 s, outages of 100 workflows: shows that it works; differences "+
		"under a third mean nothing")
	f.StringVar(&o.hooklock, "hooklock", "bin/hooklock", "the program to measure (make build); empty leaves it out")
	f.StringVar(&o.before, "before", "", "another hooklock, to be measured in the same rounds: that of the release "+
		"before")
	only := f.String("only", "", "a regular expression: which of the subjects are measured, by their name and kind")
	f.StringVar(&o.nginx, "nginx", "nginx", "nginx to compare with; left out where it is not installed")
	f.StringVar(&o.service, "service", "nginx",
		"what the upstream says that it is; a server that Hooklock does not know costs a connection for each event")
	f.StringVar(&o.peers, "peers", "", "the program of test/peers: compares other ways to protect an event, instead "+
		"of proxies (make bench-peers)")
	remembered := f.String("remembered", "",
		"as 1000,100000: compares new events at so many records, of a tenth as many workflows, instead of proxies")
	f.Uint64Var(&o.catchUp, "catchup", 0, "entries of its log that etcd keeps in memory, with -remembered; 0 is its "+
		"default, 5000")
	f.DurationVar(&o.far, "far", 0, "how much later the answers of the external member come than its own disk and "+
		"the loopback make them")
	f.StringVar(&o.as, "as", "", "part of a run: upstream, reverseproxy, fasthttp, etcd or load; used by the "+
		"program itself")
	f.StringVar(&o.target, "target", "", "host:port, for -as reverseproxy, fasthttp and load; the folder of -as etcd")
	f.StringVar(&o.load.kind, "kind", kindPlain, "requests of -as load: plain, bodiless, replayed, locked, "+
		"executed, in_time, parked, alone, puts, spread, hot or copies")
	f.IntVar(&o.load.rate, "rate", 0, "requests a second of -as load; 0 is as many as are answered")
	f.StringVar(&o.load.path, "path", defaultPath, "of some requests of -as load; {flow} in it is the workflow")
	f.IntVar(&o.load.workflows, "workflows", peerWorkflows, "of -as load")
	f.IntVar(&o.load.requests, "requests", 0, "of -as load, at most; 0 is as many as there is time for")
	f.StringVar(&o.load.run, "run", "", "makes the event IDs of -as load unlike those of other runs")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for text := range strings.SplitSeq(*remembered, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < leastRemembered {
			return nil, fmt.Errorf("-remembered: %q is no number from %d on", text, leastRemembered)
		}
		o.remembered = append(o.remembered, n)
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if short {
		o.rounds, o.duration, o.flows = 3, time.Second, 100
	}
	if o.rounds < 1 || o.connections < 1 || o.duration <= 0 || o.flows < 1 || o.outages < 0 {
		return nil,
			errors.New("-rounds, -connections, -duration and -flows must be positive, and -outages not negative")
	}
	o.load.target, o.load.connections, o.load.duration = o.target, o.connections, o.duration
	return &o, nil
}
