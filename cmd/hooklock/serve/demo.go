package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
)

// The addresses of the demo without --auto-ports.
const (
	demoProxy    = "127.0.0.1:8080"
	demoReceiver = "127.0.0.1:8081"
	demoAdmin    = "127.0.0.1:8079"
)

// NewDemo is the command demo.
func NewDemo(e *cli.Environment) *cobra.Command {
	var dir string
	var autoPorts bool
	cmd := &cobra.Command{
		Use: "demo",
		Short: "a sample legacy receiver, an embedded etcd, the proxy and the admin listener in one process, with " +
			"curl lines to try",
		Long: `Run everything that is needed to see Hooklock work, in one process: a sample legacy receiver, an embedded etcd, the proxy
in front of the receiver, and the admin listener. It needs no configuration and no installed server.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), e, dir, autoPorts) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep the data here (default: a temporary folder, removed at the end)")
	cmd.Flags().BoolVar(&autoPorts, "auto-ports", false, "use free ports instead of 8079, 8080 and 8081")
	return cmd
}

// runDemo runs the sample service, and serve in front of it, until a signal ends them.
func runDemo(ctx context.Context, e *cli.Environment, dir string, autoPorts bool) (err error) {
	dir, remove, err := demoFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	proxyAt, receiverAt, adminAt := demoProxy, demoReceiver, demoAdmin
	if autoPorts {
		proxyAt, receiverAt, adminAt = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	}
	ln, err := wiring.Listen(ctx, "the legacy receiver", receiverAt)
	if err != nil {
		return cli.Misuse(fmt.Errorf("%w (or use --auto-ports)", err))
	}
	early := catchEarlySignals()
	defer early.stopSignals()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sample := &receiver{now: time.Now, ended: sending.Done()}
	end := sample.serveSample(ln)
	defer func() { err = errors.Join(err, end()) }()
	path, err := writeDemoConfig(dir, proxyAt, ln.Addr(), adminAt)
	if err != nil {
		return err
	}
	loaded, err := wiring.Load(e, path, nil, true)
	if err != nil {
		return err
	}
	var samples sync.WaitGroup
	defer samples.Wait()
	defer stop()
	return serveUntilSignal(ctx, e, path, loaded, OpenLog(e, loaded), early, func(s *Service) {
		// The signal that ends serve also ends what the sample service and its sender do. serve
		// listens to it before this.
		signalled, done := signal.NotifyContext(sending, syscall.SIGINT, syscall.SIGTERM)
		samples.Go(func() {
			defer done()
			<-signalled.Done()
			stop()
		})
		s.awaitLive(10 * time.Second)
		printDemo(e, s, ln.Addr(), path)
		samples.Go(func() {
			select {
			case <-s.live:
				sendSamples(sending, s.door.Addr().String(), sample)
			case <-sending.Done():
			}
		})
	})
}

// demoFolder makes the folder of the demo; remove deletes a temporary one.
func demoFolder(dir string) (made string, remove func() error, err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("make the folder of the demo: %w", err)
		}
		return dir, func() error { return nil }, nil
	}
	if dir, err = os.MkdirTemp("", "hooklock-demo-"); err != nil {
		return "", nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// awaitLive waits for a session, so that the first curl line does not meet a store that is
// starting. After patience the answers say why.
func (s *Service) awaitLive(patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-s.live:
	case <-late.C:
	}
}

// writeDemoConfig writes a configuration as a user would, so that the demo runs the code of serve.
func writeDemoConfig(dir, proxyAt string, receiverAt net.Addr, adminAt string) (string, error) {
	path := filepath.Join(dir, "sidecar.yaml")
	text := fmt.Sprintf(`# Written by "hooklock demo". Change it while the demo runs: it is reloaded.
listen: %s
data_dir: %q
upstream: http://%s
etcd: {embedded: {single_replica: true}}
admin: {listen: %q}
log: {level: warn, format: text}
park_store: {single_member: true}
routes:
  - name: demo
    path: /hooks/{account}
    workflow: "demo/{path.account}"
    event_id: "{header.Idempotency-Key ?? body.id}"
  - name: orders
    path: /orders/{account}
    workflow: "orders/{path.account}"
    event_id: "{header.Idempotency-Key ?? body.id}"
    park: {enabled: true, on: [locked, slow, unreachable, unknown, failed]}
  - name: mails
    path: /mails/{account}
    workflow: "mails/{path.account}"
    event_id: "{body.id}"
    park: {enabled: true, on: [failed], attempts: 1, on_failure: skip}
`, proxyAt, filepath.Join(dir, "data"), receiverAt, adminAt)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the demo's configuration: %w", err)
	}
	return path, nil
}

func printDemo(e *cli.Environment, s *Service, receiverAt net.Addr, path string) {
	door := "http://" + s.door.Addr().String()
	hook := door + "/hooks/acme"
	program := story.ShellWord(os.Args[0])
	fmt.Fprintf(e.Stdout, `
Hooklock runs. Senders reach it at %[1]s, the legacy receiver behind it is at http://%[2]s/ (open it to see what arrives).
The page for people: http://%[3]s/ (sample deliveries are there: see what happened to evt_refused)
Health: http://%[3]s/readyz  Metrics: http://%[3]s/metrics  Configuration: %[4]s

Try these in another terminal:

1. A first delivery runs:
   curl -i %[1]s -d '{"id":"evt_1","amount":100}'

2. The same delivery again is answered, and does not run ("Idempotent-Replayed: true", the same receipt):
   curl -i %[1]s -d '{"id":"evt_1","amount":100}'

3. The same event with a changed payload is refused (422):
   curl -i %[1]s -d '{"id":"evt_1","amount":999}'

4. While one event of a workflow runs, another one is refused (409, and who holds the lock):
   curl -s '%[1]s?sleep=5s' -d '{"id":"evt_2"}' & sleep 1; curl -i %[1]s -d '{"id":"evt_3"}'; wait

5. While the receiver is down, an event is accepted (202), and runs when the receiver is back (docs/park.md):
   curl -s 'http://%[2]s/?down=10s' -d ''; curl -i %[7]s/orders/acme -d '{"id":"evt_4"}'; curl 'http://%[3]s/v1/executions?parked=true'

6. What ran, and who holds which lock:
   curl http://%[3]s/v1/executions
   curl http://%[3]s/v1/locks

7. A lock for a job of your own (docs/api.md has the rest):
   curl http://%[3]s/v1/locks/backup/acquire -d '{"holder":"me","ttl":"1m"}' -H "Authorization: Bearer $(cat %[5]s)"

8. The same for people (docs/cli.md: how to cancel, release and forget):
   export HOOKLOCK_ADMIN=http://%[3]s HOOKLOCK_TOKEN_FILE=%[5]s
   %[6]s events; %[6]s locks list

Ctrl-C ends it.
`, hook, receiverAt, s.admin.Addr(), path, story.ShellWord(filepath.Join(s.config.DataDir, admin.TokenFile)), program, door)
}

// sendSamples sends the deliveries that a newcomer finds on the page of the demo. It returns when
// all are answered, or when ctx is done.
func sendSamples(ctx context.Context, door string, service *receiver) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var slow sync.WaitGroup
	defer slow.Wait()
	slow.Go(func() { sendSample(ctx, client, door+"/hooks/initech?sleep=2s", "evt_slow") })
	for !service.hasArrived("/hooks/initech") {
		if !cli.Pause(ctx, 10*time.Millisecond) {
			return
		}
	}
	for _, one := range [][2]string{
		{"/hooks/initech", "evt_refused"}, // while evt_slow runs
		{"/hooks/globex", "evt_twice"},
		{"/hooks/globex", "evt_twice"},
		{"/orders/initech?fails", "evt_parked"},
		{"/mails/globex?fails", "evt_dead_letter"},
	} {
		sendSample(ctx, client, door+one[0], one[1])
	}
}

// sendSample sends a delivery; like any sender, again until it is not answered 503.
func sendSample(ctx context.Context, client *http.Client, target, event string) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+target,
			strings.NewReader(`{"id":"`+event+`"}`))
		if err != nil {
			return
		}
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusServiceUnavailable {
				return
			}
		}
		if !cli.Pause(ctx, time.Second) {
			return
		}
	}
}
